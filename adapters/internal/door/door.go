// Package door is what a server of duly and the API of another runtime that it mounts agree on: the routes of the API, and what they need of
// their server. Packages memos, langgraph, letta and a2a have such APIs.
package door

import (
	"crypto/sha256"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Door is the API of another runtime. The server calls Routes once, when it is made.
type Door interface {
	Routes(s *core.Scheduler, host Host) []Route
}

// Host is the server that mounts the API: it knows who asks, and how it answers and logs.
type Host interface {
	// Allow refuses a request about agents that its caller may not touch, and AllowAll one about more than single agents to a
	// caller that may touch some only. The scheduler itself asks about tasks that are submitted.
	Allow(r *http.Request, agents ...string) error
	AllowAll(r *http.Request) error
	// Caller is a hash of the credential of a request: requests of one credential share what is bounded.
	Caller(r *http.Request) [sha256.Size]byte
	// Answer sends a body as JSON, and Refuse an error: one that has the method Answer() (status int, body any) as that says.
	Answer(w http.ResponseWriter, r *http.Request, status int, body any)
	Refuse(w http.ResponseWriter, r *http.Request, err error)
	// Failed logs why a request failed on this side.
	Failed(r *http.Request, err error)
	// Wait looks again and again, until a look reports that there is no more to wait for, the longest wait is over, the server stops or the caller has gone
	// away. It does not look at all for a caller of whom as many requests wait as may.
	Wait(r *http.Request, longest time.Duration, look func() bool)
}

// Route is one call of the API, which has either Respond or Stream.
// The host adds its own admission in front of each.
type Route struct {
	Method, Path string
	// Reads says that the caller needs no more than to read, although the method is POST.
	Reads bool
	// Submits says that it stores tasks: the host takes the name of a run that does so from the request.
	Submits bool
	// Open says that it needs no credential, and shows nothing of any agent.
	Open bool
	// Asks says that it asks the scheduler itself what its caller may do, for which agent, once it knows what the body asks for.
	Asks bool
	// Endless says that a GET does not end by itself, so that there is no HEAD for it.
	Endless bool
	// KeyHeader is the header in which the clients of the API send their key: it counts as a bearer token where a request has no Authorization.
	KeyHeader string
	// Respond returns what is sent as JSON, or an error for [Host].Refuse.
	Respond func(r *http.Request) (status int, body any, err error)
	// Stream sends the answer itself.
	Stream func(w http.ResponseWriter, r *http.Request)
}

// Unprocessable makes errors about fields those of APIs that answer 422, with the names that the client has sent: theirs are the fields of the API by
// those of the task that they become.
func Unprocessable(theirs map[string]string, respond func(r *http.Request) (int, any, error)) func(r *http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) {
		status, body, err := respond(r)
		inv, is := errors.AsType[*core.InvalidError](err)
		if !is {
			return status, body, err
		}
		field := inv.Field[strings.LastIndexByte(inv.Field, '.')+1:] // as in tasks[0].cron
		if name := theirs[field]; name != "" {
			field = name
		}
		p := problem.New(core.CodeInvalid, field+" "+inv.Reason)
		p.Status, p.Title, p.Field = http.StatusUnprocessableEntity, http.StatusText(http.StatusUnprocessableEntity), field
		return 0, nil, p
	}
}
