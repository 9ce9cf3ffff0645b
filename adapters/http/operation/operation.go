// Package operation is the table of the API's calls: where each is, what a caller needs for it, what is sent and what is answered. The server mounts
// its routes from it, and a client calls by it.
package operation

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// Scope is a part of the API's calls.
// Scopes are granted to tokens, from the least to the most.
type Scope string

// The scopes.
const (
	ScopeRead    Scope = "read"    // look at tasks and counters
	ScopeTrigger Scope = "trigger" // run what is due
	ScopeWrite   Scope = "write"   // submit and control tasks
	ScopeWork    Scope = "work"    // run tasks as a worker: get them, keep them and end them
	ScopeApprove Scope = "approve" // send the signals of people: they count for tasks that wait for an approval
)

// Call is what both sides know of an operation.
type Call struct {
	ID     string // the operationId of openapi.json
	Method string
	Path   string // whose segments in braces match anything
	Needs  Scope  // if it differs from the scope of the method
	Status int    // of a success; 200 if zero

	Open    bool // needs no credential
	Wide    bool // is about all agents, and refused to callers for some
	Asks    bool // asks for scopes and agents by itself, once it knows the call
	Submits bool // stores tasks: in the name of a run, if the request has that
	HasBody bool // is refused without a body
	NoHead  bool // a GET that does not end by itself, or that runs tasks
	Long    bool // works through all of an agent, or runs tasks: a client waits for longer
}

// Scope is what a caller needs: the call's own, or to read or write as its method does. A POST that only reads says so itself.
func (c *Call) Scope() Scope {
	switch {
	case c.Needs != "":
		return c.Needs
	case c.Method == http.MethodGet:
		return ScopeRead
	default:
		return ScopeWrite
	}
}

// InQuery reports whether what is sent is in the query, and not in the body.
func (c *Call) InQuery() bool { return c.Method == http.MethodGet || c.Method == http.MethodDelete }

// Address is the path with values in place of the segments in braces, in order. Empty ones are refused: they match nothing.
func (c *Call) Address(values ...string) (string, error) {
	segments := strings.Split(c.Path, "/")
	for i, s := range segments {
		if !strings.HasPrefix(s, "{") {
			continue
		}
		if values[0] == "" {
			return "", &core.InvalidError{Field: "agent_id", Reason: "and id are required"}
		}
		segments[i], values = escape(values[0]), values[1:]
	}
	return strings.Join(segments, "/"), nil
}

// escape makes a segment of a path. One that is a dot or two would be taken for a direction.
func escape(segment string) string {
	if strings.Trim(segment, ".") == "" {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

// Op is an operation with the types of what is sent, as JSON or as parameters of a query, and of what is answered.
type Op[Request, Answer any] struct{ Call *Call }

// What is sent to a call.
type (
	// None is sent to a call that looks at nothing of a request but its path.
	None struct{}
	// Empty is sent to a call that takes no parameters and no body, and refuses others.
	Empty struct{}
	// Lines are lines of JSON, or a stream of events or text.
	Lines struct{}
)
