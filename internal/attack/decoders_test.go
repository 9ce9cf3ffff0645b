package attack_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Decoders: whatever a body is, it is taken as it says or refused whole.

// bodied is a call that takes a body, with examples of it.
type bodied struct {
	method, path string
	examples     []any
}

// bodiedCalls are all calls of openapi.json that take JSON, with the examples that it has.
func bodiedCalls(tb testing.TB) (all []bodied) {
	tb.Helper()
	data, err := os.ReadFile("../../adapters/http/openapi.json")
	require.NoError(tb, err)
	type media struct {
		Examples map[string]struct {
			Ref   string `json:"$ref"`
			Value any
		}
	}
	var doc struct {
		Paths map[string]map[string]struct {
			RequestBody *struct{ Content map[string]media }
		}
		Components struct {
			Examples map[string]struct{ Value any }
		}
	}
	require.NoError(tb, json.Unmarshal(data, &doc))
	for path, methods := range doc.Paths {
		for method, op := range methods {
			if op.RequestBody == nil || op.RequestBody.Content["application/json"].Examples == nil {
				continue
			}
			one := bodied{method: strings.ToUpper(method), path: strings.NewReplacer("{agent}", "ann", "{id}", "i", "{kind}", "ok", "{key}", "k", "{group}", "g", "{call}", "x").Replace(path)}
			for _, example := range op.RequestBody.Content["application/json"].Examples {
				if example.Value == nil {
					example.Value = doc.Components.Examples[strings.TrimPrefix(example.Ref, "#/components/examples/")].Value
				}
				require.NotNil(tb, example.Value, path)
				one.examples = append(one.examples, example.Value)
			}
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b bodied) int { return strings.Compare(a.path+a.method, b.path+b.method) })
	require.Greater(tb, len(all), 20)
	return all
}

// each of JSON's types, and numbers that fit nowhere.
var eachType = []any{nil, true, 0, -1, 1.5, 1e300, "", "x", []any{}, []any{nil}, []any{[]any{}}, map[string]any{}, map[string]any{"x": nil}}

// placed calls try with a value in which each place has in turn each type, and with an unknown member in each object.
func placed(value any, try func(any)) {
	for _, other := range eachType {
		try(other)
	}
	switch value := value.(type) {
	case map[string]any:
		for name, was := range value {
			placed(was, func(v any) {
				value[name] = v
				try(value)
			})
			value[name] = was
		}
		for _, v := range []any{nil, 1} {
			value["quite"] = v
			try(value)
		}
		delete(value, "quite")
	case []any:
		for i, was := range value {
			placed(was, func(v any) {
				value[i] = v
				try(value)
			})
			value[i] = was
		}
	}
}

// strict sends bodies to the calls, and sees that a refusal is one: it is no fault of this side, and nothing has been written.
type strict struct{ *target }

func (a strict) send(t *testing.T, call *bodied, body string) int {
	t.Helper()
	before := a.spy.Calls(writes...)
	r := httptest.NewRequestWithContext(t.Context(), call.method, call.path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer root")
	w := httptest.NewRecorder()
	a.handler.ServeHTTP(w, r)
	what := call.method + " " + call.path + " " + body + ": " + w.Body.String()
	require.Less(t, w.Code, 500, what)
	if slices.Contains(refusals, w.Code) {
		require.Equal(t, before, a.spy.Calls(writes...), what)
	}
	return w.Code
}

// refusals are the statuses of what cannot be read; MemOS has one of its own.
var refusals = []int{http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusRequestEntityTooLarge}

// Every call with every type of JSON at each place of its body, with members that it does not know, and cut at each byte.
func TestEveryDecoderRefusesWhole(t *testing.T) {
	t.Parallel()
	tried, refused := 0, 0
	note := func(code int) {
		if tried++; slices.Contains(refusals, code) {
			refused++
		}
	}
	for _, call := range bodiedCalls(t) {
		a := strict{newTarget(t, config())}
		for _, example := range call.examples {
			whole, err := json.Marshal(example)
			require.NoError(t, err)
			for cut := range whole {
				if code := a.send(t, &call, string(whole[:cut])); cut > 0 {
					assert.Contains(t, refusals, code, "%s %s %s", call.method, call.path, whole[:cut])
					note(code)
				}
			}
			placed(example, func(v any) {
				body, err := json.Marshal(v)
				require.NoError(t, err)
				code := a.send(t, &call, string(body))
				note(code)
				if strings.Contains(string(body), `"quite"`) && !strings.Contains(string(body), `"payload":{`) && !ofUsers.Match(body) {
					assert.Contains(t, refusals, code, "%s %s %s", call.method, call.path, body)
				}
			})
		}
	}
	t.Logf("%d bodies, %d refused", tried, refused)
	assert.Greater(t, refused, tried/2)
}

// ofUsers is a member that users name themselves.
var ofUsers = regexp.MustCompile(`"(usage|progress|result)":\{[^}]*"quite"`)

// FuzzDecoders looks for bodies that are a fault of this side, or that are refused after something was written.
func FuzzDecoders(f *testing.F) {
	calls := bodiedCalls(f)
	for i := range calls {
		for _, example := range calls[i].examples {
			whole, err := json.Marshal(example)
			require.NoError(f, err)
			f.Add(uint8(i), string(whole))
		}
	}
	f.Fuzz(func(t *testing.T, at uint8, body string) {
		strict{newTarget(t, config())}.send(t, &calls[int(at)%len(calls)], body)
	})
}
