package http

import (
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// Parameters and bodies of a request, read so strictly that a misspelt limit is never no limit.

// decode reads a JSON object strictly: a member that is no field is refused, as is a name in another case.
// A misspelt "timeout_sm" would otherwise run for the longest time there is.
func decode(data []byte, fields ...strictjson.Field) error {
	o, err := strictjson.Parse("body", data)
	if err != nil {
		return err
	}
	return o.Read("this call", fields...)
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
		case len(values[name]) > 1 && name != severalTimes:
			return nil, &core.InvalidError{Field: name, Reason: "is given twice"}
		case values[name][0] == "":
			return nil, &core.InvalidError{Field: name, Reason: "must not be empty: leave it out if it has no value"}
		}
	}
	return values, nil
}
