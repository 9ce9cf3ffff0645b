package reference

// The pages of codes and events, out of the constants of the code.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

// constant is one of a type, with what is said of it.
type constant struct{ name, value, comment string }

// constants are a type's constants in a file, in the order of the file: each has its own comment after it.
func constants(file, typeName string) ([]constant, error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("read constants: %w", err)
	}
	var out []constant
	for _, decl := range parsed.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			if value, ok := spec.(*ast.ValueSpec); ok && len(value.Values) == 1 && isOf(value, typeName) {
				out = append(out, constant{value.Names[0].Name, literal(value.Values[0]), strings.TrimSpace(value.Comment.Text())})
			}
		}
	}
	return out, nil
}

// literal is the text of a constant; empty if it is not spelt out.
func literal(value ast.Expr) string {
	if basic, ok := value.(*ast.BasicLit); ok {
		if text, err := strconv.Unquote(basic.Value); err == nil {
			return text
		}
	}
	return ""
}

// isOf reports whether a constant is of a type, which may be declared in another package.
func isOf(value *ast.ValueSpec, typeName string) bool {
	switch t := value.Type.(type) {
	case *ast.Ident:
		return t.Name == typeName
	case *ast.SelectorExpr:
		return t.Sel.Name == typeName
	default:
		return false
	}
}

// todo is what a caller does about each code. A test demands that all codes have it.
var todo = map[string]string{
	"invalid":                "Mend what `field` names and send it again.",
	"not_found":              "Check agent and id: `duly list --agent A`. A finished task is forgotten after its retention.",
	"limit":                  "Wait until tasks of the agent have ended, delete some, or raise `max_tasks` or `max_bytes`.",
	"quota":                  "Do what the text says, or ask an operator: `duly agent show A` has the quota and how much of it is used. The status is 403 for what it never allows.",
	"unavailable":            "Try again: the same call is safe, if tasks have ids or there is an `Idempotency-Key`. `duly doctor` says what is wrong with Redis.",
	"store_full":             "Free memory in Redis, or raise `maxmemory`. Runs under way still end.",
	"kind_disabled":          "Submit to a process that takes this kind, or take `disabled` from it.",
	"conflict":               "Read the task and decide again: `on_conflict` says what a submit does with one that exists.",
	"lease_lost":             "Nothing: another process has the task. If it happens often, raise the lease, or find out what holds the process up.",
	"runs_failed":            "Look at the report, or `duly list --status failed --since 1h`.",
	"abandoned":              "Restart the process, and have its handlers heed their context. `duly processes` shows which.",
	"forbidden":              "Use credentials with rights for the agent, or ask whoever has made the rule that the text names.",
	"spawn_depth":            "Let runs submit tasks less deep below one another, or raise `max_depth`.",
	"spawn_rate":             "Wait for the time in `Retry-After`, or raise `max_spawned`.",
	"internal":               "Report it: it is a fault of duly. The log has more.",
	"unauthorized":           "Send `Authorization: Bearer ...` with a token that is valid.",
	"no_route":               "Check the path: [http.md](http.md) has all.",
	"method_not_allowed":     "Use a method that `Allow` names.",
	"too_large":              "Send less in one call, or keep large payloads elsewhere and submit where they are.",
	"unsupported_media_type": "Send `Content-Type: application/json`.",
	"too_many_requests":      "Try again after `Retry-After`. If it says that the credential has taken its share of the store's time, ask for less, or raise `store_share`.",
	"draining":               "Try another process: this one is about to end.",
}

// statuses are the HTTP statuses of codes, by the names of their constants, as the table of a file has them.
func statuses(file string) (map[string]int, error) {
	text, err := os.ReadFile(file) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, fmt.Errorf("read statuses: %w", err)
	}
	names := map[string]int{}
	for status := range 600 {
		names["Status"+strings.ReplaceAll(http.StatusText(status), " ", "")] = status
	}
	out := map[string]int{}
	for _, m := range regexp.MustCompile(`\{(?:core\.)?(Code\w+), http\.(Status\w+)\}`).FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = names[m[2]]
	}
	return out, nil
}

// Codes is the page of the codes of errors: core's, then those that only hosts have, in the file that has the HTTP status of each.
func Codes(ofCore, ofHosts string) (string, error) {
	status, err := statuses(ofHosts)
	if err != nil {
		return "", err
	}
	all, err := constants(ofCore, "Code")
	if err != nil {
		return "", err
	}
	more, err := constants(ofHosts, "Code")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Errors\n\n" + generated + `
Programs act on codes, never on texts. Over HTTP an error is a problem (RFC 9457) with ` + "`code`" + `, ` + "`detail`" + ` and, if the request is wrong, ` + "`field`" + `. In Go
` + "`core.CodeOf(err)`" + ` is the code of any error. With ` + "`--json`" + ` the command line writes an error as an object to standard error,
with ` + "`code`, `field`, `detail`, `hint` and `exit_code`" + `; without, as a line.

The exit codes of the command line follow HTTP: 0 ok; 1 failed for good; 2 usage or invalid input, nothing was written; 3 not found; 4 some runs failed; 5 the store or the server is away, busy or
full, or took too long: the same command may succeed later; 6 not allowed; 7 it conflicts with the state of what it is about. A command that has found something wrong by itself, such as ` + "`duly doctor`" + `,
exits with 1 and the code ` + "`failed`" + `. A quota exits with 6 for what it never allows.

| code | HTTP | exit | what it means | what to do |
|---|---|---|---|---|
`)
	for _, c := range append(all, more...) {
		fmt.Fprintf(&b, "| `%s` | %s | %d | %s | %s |\n", c.value, statusText(status[c.name]), exit.OfCode(core.Code(c.value)), cell(c.comment), cell(todo[c.value]))
	}
	return b.String(), nil
}

// Events is the page of the types of events.
func Events(file string) (string, error) {
	all, err := constants(file, "EventType")
	if err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString("# Events\n\n" + generated + `
` + "`Config.OnEvent`" + ` gets each event in Go, with those of its own process. ` + "`GET /v1/events`" + ` sends those of all processes of the store as server-sent events, ` + "`duly events`" + ` shows them, from the store or from a server, and ` + "`Scheduler.Listen`" + `
hands them to a program. An event is told after what it tells of was stored, and nothing waits for whoever listens. [http.md](http.md#event) has its fields.

Processes publish events while somebody listens, and for 15 seconds after. Each has an id: with ` + "`Last-Event-ID`" + `, ` + "`since_id`" + ` or ` + "`--since-id`" + ` a listener goes on behind one, and gets each event once, in the order in which its process
did it. The store keeps about 10,000, for an hour. Where some are missing, ` + "`missed`" + ` says so, with their number where it is known: too many came, a process could not hand over as many, or nobody had listened for a while.
[Decision 46](../decisions/0046-events-of-the-store.md) has the reasons.

With ` + "`?format=cloudevents`" + ` or ` + "`duly events --cloudevents`" + ` each is an event of [CloudEvents](https://cloudevents.io) 1.0, whose ` + "`data`" + ` is the event and whose ` + "`source`" + ` and ` + "`subject`" + ` name agent and task. The end of a task has the ` + "`type`" + `
that its [callback](../callbacks.md) has: ` + "`duly.task.completed`, `duly.task.failed` or `duly.task.cancelled`" + `. All others are ` + "`duly.task.`" + ` and a word of this table, or ` + "`duly.`" + ` and the word if they are about more than one task.

| type | what has happened |
|---|---|
`)
	for _, c := range all {
		fmt.Fprintf(&b, "| `%s` | %s |\n", c.value, cell(c.comment))
	}
	return b.String(), nil
}
