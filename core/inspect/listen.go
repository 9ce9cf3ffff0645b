package inspect

// Those who listen: they read the events of all processes of the store.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// How somebody listens: as often the store is asked, and for so long processes publish events after the last question.
const (
	listenEvery = 250 * time.Millisecond
	listenFor   = 15 * time.Second
	listenPage  = 256
)

// StoreEvent is an event of any process of the store, or says that events were lost where it is.
type StoreEvent struct {
	ID    string // of the event: Listen goes on behind it. It stays the same
	Event model.Event
	Data  json.RawMessage // the event as JSON, with its ID as event_id, and with the fields that a later version has added; nil if events were lost
	Lost  int             // how many were; LostUnknown where nobody knows, as nobody listened
}

// LostUnknown is how many events were lost that nobody has counted.
const LostUnknown = store.LostUnknown

// EventPage is what was heard with one question, in order.
type EventPage struct {
	Items []StoreEvent
	Next  string // where to go on behind it; also the id of an event that the caller was not interested in
}

// ErrNoFeed says that the store does not keep events for those who listen.
var ErrNoFeed error = noFeedError{}

// noFeedError is made by the compiler: a function that nobody listens to pays nothing for it.
type noFeedError struct{}

// Error is the same each time.
func (noFeedError) Error() string { return "the store keeps no events for those who listen" }

// Listen hands over the events of all processes of the store that happen from now on, or behind after: an ID or a Next from before, of which
// about [store.FeedKept] are kept, for an hour after the last. It calls hand for each answer of the store, several times a second and also if nothing
// has happened, until ctx is done, and then returns nil. An error of hand or of the store ends it; whoever listens again behind the last Next
// misses nothing that is kept. The events of one process come in the order in which they happened.
//
// A principal who may not read all agents gets ids of their own, which say nothing of how many events others have: an event has the same one each time
// and with each process, and no other caller can use it. Which events they may see is for hand to ask.
func (s *View) Listen(ctx context.Context, after string, hand func(EventPage) error) error {
	switch {
	case s.base.Config.Feed == nil:
		return ErrNoFeed
	case s.base.Authorize(ctx, model.Access{Action: model.ActionRead}) != nil:
		return s.listenApart(ctx, after, hand)
	default:
		return s.listen(ctx, after, hand)
	}
}

// listen is Listen with the ids that the store has.
func (s *View) listen(ctx context.Context, after string, hand func(EventPage) error) error {
	for {
		page, err := s.base.Config.Feed.Follow(ctx, store.Follow{After: after, Limit: listenPage, For: listenFor})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whoever listened has left
		}
		if wrong, is := errors.AsType[*store.FeedIDError](err); is {
			return check.Invalid("since_id", "%s: take one that was sent with an event", wrong)
		}
		if err != nil {
			return err
		}
		heard := EventPage{Next: page.Next, Items: make([]StoreEvent, len(page.Items))}
		for i, item := range page.Items {
			heard.Items[i] = eventOf(&item)
		}
		if err := hand(heard); err != nil {
			return err
		}
		if after = page.Next; !page.More && !s.rest(ctx, listenEvery) {
			return nil
		}
	}
}

// eventOf is an item of a feed. What is no event was written by another program, and counts as lost.
func eventOf(item *store.FeedItem) StoreEvent {
	e := StoreEvent{ID: item.ID, Lost: item.Lost}
	if item.Data == nil {
		return e
	}
	var text bytes.Buffer
	if json.Compact(&text, item.Data) == nil {
		_ = json.Unmarshal(text.Bytes(), &e.Event) // what cannot be read of it is left out: people look at it, and nothing depends on it
	}
	if e.Event.Type == "" || strings.ContainsAny(string(e.Event.Type), "\r\n") {
		return StoreEvent{ID: item.ID, Lost: 1}
	}
	// In front of what the event says, as "id" is its task.
	e.Data = append([]byte(`{"event_id":"`+item.ID+`",`), text.Bytes()[1:]...)
	return e
}

// rest waits by the clock; false if ctx is done before.
func (s *View) rest(ctx context.Context, d time.Duration) bool {
	over := make(chan struct{})
	stop := s.base.Config.Clock.AfterFunc(d, func() { close(over) })
	defer stop()
	select {
	case <-over:
		return true
	case <-ctx.Done():
		return false
	}
}
