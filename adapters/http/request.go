package http

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// Parameters and bodies of a request, read so strictly that a misspelt limit is never no limit.

// sent reads what is sent to a call strictly: a member that is no field is refused, as is a name in another case, and a call that takes parameters takes
// no body. A misspelt "timeout_sm" would otherwise run for the longest time there is.
func sent(r *http.Request, c *operation.Call, into any) error {
	if _, none := into.(*operation.None); none {
		return nil
	}
	if !c.InQuery() {
		return readBody(r, c.HasBody, into)
	}
	if r.Method == http.MethodDelete {
		if err := readBody(r, false, &operation.Empty{}); err != nil {
			return err
		}
	}
	values, err := query(r, operation.Names(into)...)
	if err != nil {
		return err
	}
	return operation.ReadQuery(values, into)
}

// readBody reads a body into a struct. Length zero means none; a body of unknown length, in a chunked request, is read.
func readBody(r *http.Request, required bool, into any) error {
	if r.ContentLength == 0 && !required {
		return nil
	}
	data, err := requestbody.JSON(r)
	if err != nil {
		return err
	}
	o, err := strictjson.Parse("body", data)
	if err != nil {
		return err
	}
	return o.Read("this call", strictjson.Fields(into)...)
}

// bodyBy reads a body with a reader of core.
func bodyBy[T any](read func(data []byte) (T, error)) func(r *http.Request) (T, error) {
	return func(r *http.Request) (T, error) {
		data, err := requestbody.JSON(r)
		if err != nil {
			return *new(T), err
		}
		return read(data)
	}
}

// some are the elements of an answer: an empty array, not null.
func some[E any](all []E) []E {
	if all == nil {
		return []E{}
	}
	return all
}

// query reads the parameters of a request, each of which is given once at most, and not empty: an empty cursor would begin
// the listing again.
func query(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &core.InvalidError{Field: "query", Reason: "has an invalid escape"}
	}
	// Sorted, so that the same request has the same error.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case !slices.Contains(names, name):
			return nil, &core.InvalidError{Field: name, Reason: "is not a parameter of this call"}
		case len(values[name]) > 1 && !slices.Contains(severalTimes, name):
			return nil, &core.InvalidError{Field: name, Reason: "is given twice"}
		case values[name][0] == "":
			return nil, &core.InvalidError{Field: name, Reason: "must not be empty: leave it out if it has no value"}
		}
	}
	return values, nil
}
