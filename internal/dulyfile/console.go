package dulyfile

import (
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Console says whether a process serves pages for people beside its API.
type Console string

// What it may say. An empty one is ConsoleOn where the API listens on this machine alone, and ConsoleOff elsewhere.
const (
	ConsoleOff      Console = "off"
	ConsoleOn       Console = "on"
	ConsoleReadOnly Console = "read-only"
)

// tracePlace is where the id of a trace comes into an address.
const tracePlace = "{trace_id}"

// readTraces reads the address of traces.
func readTraces(into *string) reader {
	return func(p place) error {
		if err := text(into)(p); err != nil {
			return err
		}
		u, err := url.Parse(strings.ReplaceAll(*into, tracePlace, "id"))
		if *into != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || !strings.Contains(*into, tracePlace)) {
			return p.fail("must be an address with " + tracePlace + ", such as https://traces.example/trace/" + tracePlace)
		}
		return nil
	}
}

// mustBeConsole is what is wrong with anything else.
const mustBeConsole = "must be off, on or read-only"

// Valid reports whether it is one of them, or empty.
func (c Console) Valid() bool {
	return c == "" || c == ConsoleOff || c == ConsoleOn || c == ConsoleReadOnly
}

// readConsole reads the key console: a text, or an object whose show is that text.
func readConsole(into *Console, traces *string) reader {
	return func(p place) error {
		if p.value().Kind == yaml.MappingNode {
			return p.read(map[string]reader{"show": readShow(into), "trace_url": readTraces(traces)})
		}
		return readShow(into)(p)
	}
}

// readShow reads it by its text: on and off are words here, and no truth values as in old versions of YAML.
func readShow(into *Console) reader {
	return func(p place) error {
		var name string
		if err := text(&name)(p); err != nil {
			return p.fail(mustBeConsole)
		}
		if *into = Console(name); !into.Valid() {
			return p.fail(mustBeConsole+", not %q", name)
		}
		return nil
	}
}
