package http

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// body reads the whole body of a request, which has to be JSON.
func body(r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, errMediaType
	}
	data, err := io.ReadAll(r.Body)
	switch {
	case err != nil:
		return nil, bodyError(err)
	case len(data) == 0:
		return nil, &core.InvalidError{Field: "body", Reason: "is required"}
	}
	return data, nil
}

// bodyError is why a body cannot be read.
func bodyError(err error) error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(problem.CodeTooLarge, fmt.Sprintf("the body is longer than %d bytes", tooLarge.Limit))
	}
	return &core.InvalidError{Field: "body", Reason: "cannot be read: it ends early or is badly framed"}
}

// decode reads a JSON object strictly: a member that is no field is refused, as is a name in another case.
func decode(data []byte, fields ...strictjson.Field) error {
	o, err := strictjson.Parse("body", data)
	if err != nil {
		return err
	}
	return o.Read("this call", fields...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// query reads the parameters of a request, each of which is given once at most, and not empty: an empty cursor would begin
// the listing again.
func query(r *http.Request, names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &core.InvalidError{Field: "query", Reason: "is badly escaped"}
	}
	for _, name := range sortedKeys(values) {
		switch {
		case !slices.Contains(names, name):
			return nil, &core.InvalidError{Field: name, Reason: "is not a parameter of this call"}
		case len(values[name]) > 1:
			return nil, &core.InvalidError{Field: name, Reason: "is given twice"}
		case values[name][0] == "":
			return nil, &core.InvalidError{Field: name, Reason: "must not be empty: leave it out if it has no value"}
		}
	}
	return values, nil
}
