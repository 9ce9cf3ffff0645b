package operation

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

// fields are those of what is sent; none of what is no struct.
func fields(request any) []strictjson.Field {
	v := reflect.New(reflect.TypeOf(request))
	v.Elem().Set(reflect.ValueOf(request))
	if v.Elem().Kind() != reflect.Struct {
		return nil
	}
	return strictjson.Fields(v.Interface())
}

// Query are the fields of what is sent as parameters, without those that have no value.
func Query(request any) url.Values {
	q := url.Values{}
	for _, f := range fields(request) {
		switch v := reflect.ValueOf(f.Into).Elem(); {
		case v.IsZero():
		case v.Kind() == reflect.Bool:
			q.Set(f.Name, "true")
		case v.CanInt():
			q.Set(f.Name, strconv.FormatInt(v.Int(), 10))
		case v.Kind() == reflect.Slice:
			for _, text := range v.Seq2() {
				q.Add(f.Name, text.String())
			}
		default:
			q.Set(f.Name, v.String())
		}
	}
	return q
}

// ReadQuery reads parameters into the struct that request points to. Each may be given once at most, unless it is a list, and not empty: an empty
// cursor would begin a listing again.
func ReadQuery(q url.Values, request any) error {
	for _, f := range strictjson.Fields(request) {
		text := q.Get(f.Name)
		if !q.Has(f.Name) {
			continue
		}
		v, good := reflect.ValueOf(f.Into).Elem(), true
		switch {
		case v.Kind() == reflect.Bool:
			v.SetBool(text == "true")
			good = text == "true" || text == "false"
		case v.CanInt():
			n, err := strconv.Atoi(text)
			v.SetInt(int64(n))
			good = err == nil && n >= 1
		case v.Kind() == reflect.Slice:
			v.Set(reflect.ValueOf(q[f.Name]))
		default:
			v.SetString(strings.Join(q[f.Name], ","))
		}
		if !good {
			return &core.InvalidError{Field: f.Name, Reason: f.Must}
		}
	}
	return nil
}

// Names are the parameters that the struct has that request points to.
func Names(request any) []string {
	var names []string
	for _, f := range strictjson.Fields(request) {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

// Check refuses a text that is not valid UTF-8, which JSON would change without an error.
func Check(request any) error {
	for _, f := range fields(request) {
		if v := reflect.ValueOf(f.Into).Elem(); v.Kind() == reflect.String && !utf8.ValidString(v.String()) {
			return &core.InvalidError{Field: f.Name, Reason: "is not valid UTF-8"}
		}
	}
	return nil
}
