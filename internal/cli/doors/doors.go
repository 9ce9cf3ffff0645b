// Package doors opens the APIs of other runtimes that the file has.
package doors

import (
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/http/a2a"
	"github.com/seed-6f6f2c11/duly/adapters/http/langgraph"
	"github.com/seed-6f6f2c11/duly/adapters/http/letta"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// Speak lets the handlers of the doors, and callbacks, post what their runtimes understand.
func Speak(c *dulyfile.File) error {
	dulyfile.Speak(c, langgraph.Kind, langgraph.Runs{})
	dulyfile.Speak(c, letta.Kind, letta.Messages{})
	if c.A2A == nil {
		return nil
	}
	return dulyfile.Write(c, a2a.Form, a2a.Notices{})
}

// Of are the doors of a file, for clients that need a token or not.
func Of(c *dulyfile.File, secured bool) (open []httpadapter.Door) {
	if dulyfile.HasDoor(c, langgraph.Kind) {
		open = append(open, langgraph.Door{})
	}
	if dulyfile.HasDoor(c, letta.Kind) {
		open = append(open, letta.Door{})
	}
	if a := c.A2A; a != nil {
		open = append(open, a2a.Door{Kind: a.Kind, Description: a.Description, URL: a.URL, Wait: a.Wait, Push: c.Callbacks != nil, Secured: secured})
	}
	return open
}
