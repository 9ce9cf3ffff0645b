package hooks

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rfc is the example of RFC 6901, section 5.
const rfc = `{"foo": ["bar", "baz"], "": 0, "a/b": 1, "c%d": 2, "e^f": 3, "g|h": 4, "i\\j": 5, "k\"l": 6, " ": 7, "m~n": 8}`

// What each template makes of a message; a text that begins with "error" is part of the error.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, body, want string }{
		{"{/foo/0}", rfc, "bar"},
		{"{/a~1b}", rfc, "1"},
		{"{/c%d}", rfc, "2"},
		{"{/e^f}", rfc, "3"},
		{"{/g|h}", rfc, "4"},
		{`{/i\j}`, rfc, "5"},
		{`{/k"l}`, rfc, "6"},
		{"{/ }", rfc, "7"},
		{"{/m~0n}", rfc, "8"},
		{"{/m~01n}", `{"m~1n":1}`, "1"},
		{"{//a}", `{"":{"a":1}}`, "1"},
		{"{/a/}", `{"a":{"":1}}`, "1"},
		{"{/}", `"all"`, "all"},
		{"{/}", ` 12.50 `, "12.50"},
		{"a{/x}b{header:X-A}c", `{"x":true}`, "atruebheadc"},
		{"{{/x}} {/x}}", `{"x":"{/y}"}`, "{/x}} {/y}}"},
		{"{/x}", `{"x":123456789012345678901234567890}`, "123456789012345678901234567890"},
		{"{/x}", `{"x":"\u00e9\ud83d\ude00"}`, "é😀"},
		{"{/a/b/c}", `{"a":{"b":{"c":-0.0}}}`, "-0.0"},
		{"{/x}", `{"x": 1e400 }`, "1e400"},
		{"{/foo/2}", rfc, "error {/foo/2} finds nothing in the body"},
		{"{/foo/-}", rfc, "error finds nothing"},
		{"{/foo/00}", rfc, "error finds nothing"},
		{"{/foo/-1}", rfc, "error finds nothing"},
		{"{/foo/+1}", rfc, "error finds nothing"},
		{"{/foo/99999999999999999999}", rfc, "error finds nothing"},
		{"{/FOO/0}", rfc, "error finds nothing"},
		{"{/foo/0/0}", rfc, "error finds nothing"},
		{"{/foo}", rfc, "error {/foo} finds an array"},
		{"{/}", rfc, "error finds an object"},
		{"{/x}", `{"x":null}`, "error finds null"},
		{"{/x}", `{"x":1,"x":2}`, "error is given twice"},
		{"{/x}", `{"x":1,"y":`, "error needs a body of JSON"},
		{"{/x}", ``, "error needs a body of JSON"},
		{"{/x}", "{\"x\":\"\xff\"}", "error is not valid UTF-8"},
		{"{/x}", `{"x":"\ud83d"}`, "error half of a surrogate pair"},
		{"{/x}", strings.Repeat("[", 20000), "error needs a body of JSON"},
		{"{header:X-B}", ``, "error {header:X-B} finds no such header"},
		{"{header:X-C}", ``, "error finds 2 such headers"},
		{"{", ``, "error a { without its }"},
		{"{}", ``, "error must be a JSON pointer such as {/data/id}"},
		{"{x}", ``, "error must be a JSON pointer"},
		{"{/a~2b}", ``, "error has a ~ that is neither"},
		{"{/a~}", ``, "error has a ~ that is neither"},
		{"{header:}", ``, "error must name a header"},
		{"{header:a b}", ``, "error must name a header"},
		{"{" + strings.Repeat("/a", 33) + "}", ``, "error has 33 steps: the limit is 32"},
	} {
		parsed, err := parseTemplate(c.text)
		var got string
		if err == nil {
			got, err = parsed.render(&message{http.Header{"X-A": {"head"}, "X-C": {"1", "2"}}, []byte(c.body)})
		}
		if want, bad := strings.CutPrefix(c.want, "error "); bad {
			require.ErrorContains(t, err, want, "%s of %s", c.text, c.body)
			continue
		}
		require.NoError(t, err, "%s of %s", c.text, c.body)
		assert.Equal(t, c.want, got, "%s of %s", c.text, c.body)
	}
}

// Strings of JSON are templates, and one that is a pointer alone becomes what that finds, as it is written.
func TestValues(t *testing.T) {
	t.Parallel()
	body := `{"n": 1.50, "list": [1,  2], "s": "a<b", "null": null}`
	for said, want := range map[string]string{
		`"{/n}"`:               `1.50`,
		`"{/}"`:                body,
		`" {/n}"`:              `" 1.50"`,
		`"{/s}"`:               `"a<b"`,
		`"x{/s}"`:              `"xa\u003cb"`,
		`""`:                   `""`,
		`[]`:                   `[]`,
		`{}`:                   `{}`,
		`12345678901234567890`: `12345678901234567890`,
		`{"a": ["{/list}", {"{/n}": "{/null}"}], "b": true}`: `{"a":[[1,2],{"{/n}":null}],"b":true}`,
		`["{/list/2}"]`:                  `error payload[0] {/list/2} finds nothing`,
		`{"z": "{/y}", "a": "b{/list}"}`: `error payload.a {/list} finds an array`,
	} {
		v, err := parseValue("payload", json.RawMessage(said))
		require.NoError(t, err, said)
		got, err := v.json("payload", &message{nil, []byte(body)})
		if text, bad := strings.CutPrefix(want, "error "); bad {
			require.ErrorContains(t, err, text)
			continue
		}
		require.NoError(t, err, said)
		assert.Equal(t, want, string(got), said)
	}
	_, err := parseValue("payload", json.RawMessage(`{"a": ["{x}"]}`))
	require.ErrorContains(t, err, "payload.a[0] {x} must be a JSON pointer")
}

// finds is what a pointer of RFC 6901 finds, written down once more without a look at the other; false if nothing, or if a member is given twice.
func finds(v any, pointer string) (any, bool) {
	if pointer == "/" {
		return v, true
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.ReplaceAll(strings.ReplaceAll(step, "~1", "/"), "~0", "~")
		switch of := v.(type) {
		case map[string]any:
			next, ok := of[step]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.ParseUint(step, 10, 31)
			if err != nil || len(step) > 1 && step[0] == '0' || int(i) >= len(of) {
				return nil, false
			}
			v = of[i]
		default:
			return nil, false
		}
	}
	return v, true
}

// No template and no body makes it panic, and what a pointer finds is what a decoder of JSON finds.
func FuzzTemplate(f *testing.F) {
	for _, text := range []string{"{/foo/0}", "{/a~1b}", "{/}", "{//}", "{header:A}", "{{", "a{/m~0n}b", "{/foo/-}", "{", "{~}"} {
		f.Add(text, []byte(rfc))
	}
	f.Add("{/x}", []byte(`{"x":1,"x":2}`))
	f.Add("{/0/0}", []byte(`[[{}]]`))
	f.Fuzz(func(t *testing.T, text string, body []byte) {
		parsed, err := parseTemplate(text)
		if err != nil {
			return
		}
		m := &message{http.Header{"A": {"b"}}, body}
		rendered, err := parsed.render(m)
		if err == nil && utf8.ValidString(text) && !utf8.ValidString(rendered) {
			t.Fatalf("%q of %q is %q", text, body, rendered)
		}
		for _, p := range parsed {
			if p.from == nil || p.from.header != "" {
				continue
			}
			raw, err := p.from.raw(m)
			var v any
			valid := json.Unmarshal(body, &v) == nil
			want, found := finds(v, p.from.text)
			if err != nil {
				continue // it is stricter: members that are given twice, halves of characters
			}
			var got any
			if !valid || !found || json.Unmarshal(raw, &got) != nil {
				t.Fatalf("%q of %q finds %s", text, body, raw)
			}
			a, _ := json.Marshal(want)
			b, _ := json.Marshal(got)
			if string(a) != string(b) {
				t.Fatalf("%q of %q finds %s, not %s", text, body, b, a)
			}
		}
	})
}
