package inspect

// Listeners: they read the events of all processes of the store.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
)

// How a listener reads: how often it asks the store, and for how long processes publish events after it last asked.
const (
	listenEvery = 250 * time.Millisecond
	listenFor   = 15 * time.Second
	listenPage  = 256
)

// StoreEvent is an event of any process of the store, or says that events were lost in its place.
type StoreEvent struct {
	ID    string // of the event, which stays the same: Listen can continue after it
	Event model.Event
	Data  json.RawMessage // the event as JSON, with its ID as event_id, and with the fields that a later version has added; nil if events were lost
	Lost  int             // how many were lost; LostUnknown if they were not counted, as there was no listener
}

// LostUnknown is the number of lost events if they were not counted.
const LostUnknown = feed.LostUnknown

// EventPage is the events of one answer of the store, in order.
type EventPage struct {
	Items []StoreEvent
	Next  string // Listen can continue after it; also the id of an event that the caller was not interested in
}

// ErrNoFeed says that the store does not keep events for listeners.
var ErrNoFeed error = noFeedError{}

// noFeedError is made by the compiler: a function without listeners pays nothing for it.
type noFeedError struct{}

// Error returns a constant text.
func (noFeedError) Error() string { return "the store keeps no events for those who listen" }

// Listen passes on the events of all processes of the store that happen from now on, or after an earlier ID or Next. About
// [feed.Kept] events are kept, for an hour after the last. It calls hand for each answer of the store, several times a second and also if nothing
// has happened, until ctx is done, and then returns nil. An error of hand or of the store ends it; a caller that listens again from the last Next
// misses nothing that is kept. The events of one process come in the order in which they happened.
//
// A principal that may not read all agents gets sealed ids, which do not reveal how many events others have: an event has the same one each time
// and with each process, and no other caller can use it. hand must check which events the principal may see.
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

// listen is Listen with the ids of the store.
func (s *View) listen(ctx context.Context, after string, hand func(EventPage) error) error {
	for {
		page, err := s.base.Config.Feed.Follow(ctx, feed.Follow{After: after, Limit: listenPage, For: listenFor})
		if ctx.Err() != nil {
			return nil //nolint:nilerr // whoever listened has left
		}
		if wrong, is := errors.AsType[*feed.IDError](err); is {
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

// eventOf reads an item of a feed. An item that is no event was written by another program, and counts as lost.
func eventOf(item *feed.Item) StoreEvent {
	e := StoreEvent{ID: item.ID, Lost: item.Lost}
	if item.Data == nil {
		return e
	}
	var text bytes.Buffer
	if json.Compact(&text, item.Data) == nil {
		_ = json.Unmarshal(text.Bytes(), &e.Event) // fields that cannot be read are left out: people look at them, and nothing depends on them
	}
	if e.Event.Type == "" || strings.ContainsAny(string(e.Event.Type), "\r\n") {
		return StoreEvent{ID: item.ID, Lost: 1}
	}
	// Before the fields of the event, as "id" is its task.
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
