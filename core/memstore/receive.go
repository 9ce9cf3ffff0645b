package memstore

// Messages of senders, which are carried out once.

import (
	"context"
	"maps"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// receipt is what is remembered of a message, and until when.
type receipt struct {
	message.Receipt

	until moment.Millis
}

// Receive notes the state of a message; see [store.Messages].
func (s *Store) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	if err := ctx.Err(); err != nil {
		return message.Received{}, &store.Error{Verb: "receive", Err: err}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	old, known := s.receipts[r.Message]
	known = known && old.until > now
	switch {
	case r.State == message.Begun && known && old.By != r.By:
		return message.Received{State: old.State, Content: old.Content}, nil
	case r.State == message.Dropped:
		if known && old.By == r.By && old.State == message.Begun {
			delete(s.receipts, r.Message)
		}
		return message.Received{}, nil
	}
	// A call that adds cleans up, once there are twice as many as before: each message pays for a few.
	if len(s.receipts) >= s.sweepAt {
		maps.DeleteFunc(s.receipts, func(_ string, old receipt) bool { return old.until <= now })
		s.sweepAt = max(leastReceipts, 2*len(s.receipts))
	}
	s.receipts[r.Message] = receipt{r, now.Add(r.For)}
	return message.Received{}, nil
}

// leastReceipts is the number of messages below which no memory is worth cleaning up.
const leastReceipts = 100
