package given

// Requests about tasks, named as they were submitted.

import (
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/message"
)

// Deletion forgets a task as it was submitted.
func Deletion(s store.Submission) store.Deletion {
	return store.Deletion{Agent: s.Agent, ID: s.ID, Group: s.Group}
}

// Replay puts it back, named as its submission did.
func Replay(s store.Submission) store.Replay {
	return store.Replay{Agent: s.Agent, ID: s.ID, Kind: s.Kind, Group: s.Group, Key: s.Key, Level: s.Level, Body: s.Body, State: s.State}
}

// Touching notes that something happened for a task as it would be submitted.
func Touching(s store.Submission, p store.Pulse) store.Touch {
	return store.Touch{Agent: s.Agent, ID: s.ID, Kind: s.Kind, Level: s.Level, Body: s.Body, Pulse: p}
}

// Stamp is a stamp with a number.
func Stamp(n int) string { return fmt.Sprintf("STAMP%0*d", bound.StampLen-len("STAMP"), n) }

// Receipt is one of a delivery that has a letter for a name.
func Receipt(name, by string, state message.State, lasts time.Duration) message.Receipt {
	return message.Receipt{Message: name, By: strings.Repeat(by, store.NonceLen), Content: "what " + name + " asks for", State: state, For: lasts}
}
