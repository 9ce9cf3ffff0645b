// Package feed is what stores keep of the events of all processes: while the store has subscribers, and read by their ids. It is optional for a store,
// and only displays depend on it.
package feed

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Feed is implemented by stores that deliver the events of all processes to subscribers. It costs nothing
// without subscribers: a process learns from the answers to its other calls that there are some.
type Feed interface {
	// Listened reports whether events are worth a Publish, as far as this process knows. It makes no call.
	Listened() bool
	// Publish keeps events in order, after as many that were lost before them. It reports whether there are subscribers; if not, nothing
	// is kept.
	Publish(ctx context.Context, lost int, events [][]byte) (bool, error)
	// Follow subscribes from now on, and returns the published events.
	Follow(ctx context.Context, f Follow) (Page, error)
	// FeedSecret is made once by the store, of SecretLen random bytes, and is the same for all processes: the ids of those who may not see all events
	// are sealed with it.
	FeedSecret(ctx context.Context) ([]byte, error)
}

// Bounds of a feed. More events are kept by a store that drops several at once.
const (
	Kept    = 10_000
	KeptFor = time.Hour // after the last event or listener
	// SecretLen is how many bytes a feed's secret has.
	SecretLen = 32
)

// Follow asks for events.
type Follow struct {
	After string        // the Next of the page before, or the ID of an event; empty for those from now on. Another text is a *[IDError]
	Limit int           // most events
	For   time.Duration // the subscription lasts so long, unless this is called again
}

// Page is a page of published events, in order.
type Page struct {
	Items []Item
	Next  string // After of the next page
	More  bool   // there may be more now
}

// Item is an event, or marks where some were lost.
type Item struct {
	ID   string // of the event, or where to continue after those that were lost
	Data []byte // nil if events were lost
	Lost int    // how many were; LostUnknown where that is not known
}

// LostUnknown is the number of lost events that were never counted, as there were no subscribers.
const LostUnknown = -1

// IDError refuses a text as the id of an event.
type IDError struct{ ID string }

// Error quotes the text.
func (e *IDError) Error() string { return fmt.Sprintf("%q is not the id of an event", e.ID) }

// eventID is the id of an event: a number within a time without a break in the subscriptions.
type eventID struct{ epoch, n int64 }

func (i eventID) String() string { return fmt.Sprintf("%d-%d", i.epoch, i.n) }

func (i eventID) less(j eventID) bool { return i.epoch < j.epoch || i.epoch == j.epoch && i.n < j.n }

func parseID(text string) (eventID, error) {
	epoch, n, _ := strings.Cut(text, "-")
	e, err1 := strconv.ParseUint(epoch, 10, 52) // the largest number that Lua can count to
	k, err2 := strconv.ParseUint(n, 10, 52)
	if errors.Join(err1, err2) != nil {
		return eventID{}, &IDError{text}
	}
	return eventID{int64(e), int64(k)}, nil
}

// ID is an id as Follow takes it, spelt in one way.
func ID(text string) (string, error) {
	if text == "" {
		return "", nil
	}
	id, err := parseID(text)
	return id.String(), err
}

// Before reports whether an event came before another, by their ids.
func Before(a, b string) bool {
	x, err1 := parseID(a)
	y, err2 := parseID(b)
	return errors.Join(err1, err2) == nil && x.less(y)
}

// NewPage makes the answer to a Follow of entries, which are the first after f.After that are kept: each has the ID of an event and its
// Data, or of the last of some that were lost, and none. Missing numbers are of events that were lost. epoch is the current one, and
// last the id of the last entry; empty if none is kept.
func NewPage(f Follow, epoch int64, last string, entries []Item) (Page, error) {
	newest, now := eventID{}, eventID{epoch: epoch}
	if last != "" {
		var err error
		if newest, err = parseID(last); err != nil {
			return Page{}, err
		}
	}
	at := now
	if newest.epoch == epoch {
		at = newest
	}
	if f.After == "" {
		return Page{Next: at.String()}, nil
	}
	at, err := parseID(f.After)
	if err != nil {
		return Page{}, err
	}
	p := Page{More: len(entries) >= f.Limit}
	for i := range entries {
		if at, err = p.add(at, &entries[i]); err != nil {
			return Page{}, err
		}
	}
	// Where nothing follows, an earlier time has passed, or the id is of a store that was emptied since.
	if !p.More && (at.epoch != epoch || newest.less(at) && at.n > 0) {
		at = now
		p.lose(at, LostUnknown)
	}
	p.Next = at.String()
	return p, nil
}

// add adds an entry after an id, and returns its own.
func (p *Page) add(at eventID, entry *Item) (eventID, error) {
	id, err := parseID(entry.ID)
	if err != nil {
		return at, err
	}
	before := eventID{id.epoch, id.n - 1}
	switch {
	case at.epoch != id.epoch:
		p.lose(before, LostUnknown)
	case before.n > at.n:
		p.lose(before, int(before.n-at.n))
	}
	if len(entry.Data) == 0 {
		p.lose(id, 1)
		return id, nil
	}
	p.Items = append(p.Items, Item{ID: entry.ID, Data: entry.Data})
	return id, nil
}

// lose records that events were lost up to an id, together with those before them.
func (p *Page) lose(id eventID, lost int) {
	if n := len(p.Items); n > 0 && p.Items[n-1].Data == nil {
		last := &p.Items[n-1]
		if last.ID = id.String(); last.Lost == LostUnknown || lost == LostUnknown {
			last.Lost = LostUnknown
			return
		}
		last.Lost += lost
		return
	}
	p.Items = append(p.Items, Item{ID: id.String(), Lost: lost})
}
