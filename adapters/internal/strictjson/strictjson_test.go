package strictjson_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core"
)

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		"":                   "body is not valid JSON: unexpected end of JSON input",
		"{":                  "body is not valid JSON: unexpected end of JSON input",
		`{} {}`:              "body is not valid JSON: invalid character '{' after top-level value",
		`{"a":1}x`:           "body is not valid JSON: invalid character 'x' after top-level value",
		`{"a":["\ud800"]}`:   `body has the escape \ud800, which is half of a surrogate pair and no character`,
		`{"\udc00":1}`:       `body has the escape \udc00, which is half of a surrogate pair and no character`,
		"{\"a\":\"\xff\"}":   "body is not valid UTF-8",
		"[]":                 "body must be a JSON object",
		"null":               "body must be a JSON object",
		`"a"`:                "body must be a JSON object",
		`{"a":1,"a":2}`:      "a is given twice",
		`{"a":1,"\u0061":2}`: "a is given twice",
		`{"` + strings.Repeat("é", 30) + `":1,"` + strings.Repeat("é", 30) + `":1}`: strings.Repeat("é", 20) + " is given twice",
	} {
		o, err := strictjson.Parse("body", []byte(data))
		var invalid *core.InvalidError
		if assert.ErrorAs(t, err, &invalid, data) {
			assert.Equal(t, want, invalid.Field+" "+invalid.Reason, data)
		}
		assert.Nil(t, o)
	}
}

func TestMembersAreReadWhenAskedFor(t *testing.T) {
	t.Parallel()
	o, err := strictjson.Parse("body", []byte(` {"a":"x","A":"y","n":null,"o":{"b":"z"},"i":7,"l":["p"]} `))
	require.NoError(t, err)
	assert.Equal(t, "x", o.Text("a"), "names in another case are others")
	assert.Equal(t, "y", o.Text("A"))
	assert.Equal(t, "z", o.Object("o").Text("b"))
	assert.Equal(t, 7, strictjson.Value[int](o, "i"))
	assert.Equal(t, []string{"p"}, strictjson.Value[[]string](o, "l"))
	assert.True(t, o.Has("a"))
	assert.False(t, o.Has("n"), "null is left out")
	assert.False(t, o.Has("none"))
	assert.Empty(t, o.Text("i"), "of another type")
	assert.Empty(t, strictjson.Value[[]string](strictjson.Object{"l": json.RawMessage(`["p",1]`)}, "l"), "half of a value is none")
	assert.Nil(t, o.Object("a"))
	assert.Empty(t, o.Object("none").Object("deeper").Text("text"))
}

func TestFieldsAreReadStrictly(t *testing.T) {
	t.Parallel()
	var text string
	var number int
	read := func(data string) error {
		text, number = "before", 1
		o, err := strictjson.Parse("body", []byte(data))
		require.NoError(t, err)
		return o.Read("a tick", strictjson.Field{Name: "text", Into: &text, Must: "must be a text"},
			strictjson.Field{Name: "number", Into: &number, Must: "must be a whole number"})
	}
	require.NoError(t, read(`{"text":"now","number":null}`))
	assert.Equal(t, "now", text)
	assert.Equal(t, 1, number, "null leaves it as it is")
	for data, want := range map[string]string{
		`{"text":1}`:                            "text must be a text",
		`{"number":1.5}`:                        "number must be a whole number",
		`{"Text":"x"}`:                          "Text is not a field of a tick",
		`{"z":1,"y":2,"text":"x"}`:              "y is not a field of a tick",
		`{"z":null}`:                            "z is not a field of a tick",
		`{"` + strings.Repeat("n", 50) + `":1}`: strings.Repeat("n", 40) + " is not a field of a tick",
	} {
		var invalid *core.InvalidError
		if err := read(data); assert.ErrorAs(t, err, &invalid, data) {
			assert.Equal(t, want, invalid.Field+" "+invalid.Reason, data)
		}
	}
}

// A member that is given is never taken for one that is left out.
func TestZeroIsRefused(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"text":""}`:                            "text must not be empty: leave it out if it has no value",
		`{"number":0}`:                           "number must not be 0: leave it out for the default",
		`{"number":-0}`:                          "number must not be -0: leave it out for the default",
		`{"for":"0s"}`:                           `for must not be "0s": leave it out for the default`,
		`{"for":"soon"}`:                         "for must be a duration",
		`{"for":5}`:                              "for must be a duration",
		`{"until":"0001-01-01T00:00:00Z"}`:       `until must not be "0001-01-01T00:00:00Z": leave it out for the default`,
		`{"note":"","on":false,"list":[]}`:       "",
		`{"text":null,"number":null,"for":null}`: "",
	} {
		var text, note string
		var number int
		var on bool
		var list []string
		var lasts time.Duration
		var until time.Time
		o, err := strictjson.Parse("body", []byte(data))
		require.NoError(t, err)
		err = o.Read("this call",
			strictjson.Field{Name: "text", Into: &text, Must: "must be a string"},
			strictjson.Field{Name: "note", Into: &note, Must: "must be a string", Zero: true},
			strictjson.Field{Name: "number", Into: &number, Must: "must be a whole number"},
			strictjson.Field{Name: "on", Into: &on, Must: "must be true or false"},
			strictjson.Field{Name: "list", Into: &list, Must: "must be an array of strings"},
			strictjson.Field{Name: "for", Into: (*strictjson.Duration)(&lasts), Must: "must be a duration"},
			strictjson.Field{Name: "until", Into: &until, Must: "must be a time"})
		if want == "" {
			require.NoError(t, err, data)
			continue
		}
		assert.EqualError(t, err, want, data)
	}
}

// What is accepted is what encoding/json accepts, member by member.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":1}`, `{"a":1,"a":2}`, ` {"a":{"b":[1,2]},"":null} `, `[]`, `nul`, "{\"\xff\":1}", `{"\ud800":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := strictjson.Parse("body", data)
		var plain map[string]json.RawMessage
		known := json.Unmarshal(data, &plain)
		if err != nil {
			var invalid *core.InvalidError
			require.ErrorAs(t, err, &invalid)
			if known == nil && plain != nil && utf8.Valid(data) && !strings.Contains(invalid.Reason, "surrogate") {
				assert.Equal(t, "is given twice", invalid.Reason)
			}
			return
		}
		require.NoError(t, known)
		assert.Len(t, o, len(plain))
		for name, value := range plain {
			assert.JSONEq(t, string(value), string(o[name]))
		}
	})
}
