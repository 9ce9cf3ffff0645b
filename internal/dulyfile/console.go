package dulyfile

// Console says whether a process serves pages for people beside its API.
type Console string

// What it may say. An empty one is ConsoleOn where the API listens on this machine alone, and ConsoleOff elsewhere.
const (
	ConsoleOff      Console = "off"
	ConsoleOn       Console = "on"
	ConsoleReadOnly Console = "read-only"
)

// mustBeConsole is what is wrong with anything else.
const mustBeConsole = "must be off, on or read-only"

// Valid reports whether it is one of them, or empty.
func (c Console) Valid() bool {
	return c == "" || c == ConsoleOff || c == ConsoleOn || c == ConsoleReadOnly
}

// readConsole reads it by its text: on and off are words here, and no truth values as in old versions of YAML.
func readConsole(into *Console) reader {
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
