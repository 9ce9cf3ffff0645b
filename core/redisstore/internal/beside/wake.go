package beside

// Wake-ups over Pub/Sub: losing one costs latency, never work.

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// checkEvery is how often a silent subscription is checked: losing a wake-up costs latency only, and an idle process
// should cost Redis next to nothing.
// go-redis sends a PING for it.
const checkEvery = 15 * time.Second

// Wakeups subscribes to the announcements of the scripts; see [store.Waker].
// The channel is closed when ctx ends, or when the client is closed; its
// reader must not wait for anything else.
func (s *Store) Wakeups(ctx context.Context) (<-chan store.Wakeup, error) {
	// One channel for the whole prefix: a process has handlers for agents of every partition.
	sub := s.db.Client.Subscribe(ctx, s.prefix+"wake")
	// Receive waits until the subscription is confirmed, so that no wake-up is
	// missed from the moment this returns.
	if _, err := sub.Receive(ctx); err != nil {
		_ = sub.Close() // the first error is the one to report
		return nil, call.Wrap("wakeups", err)
	}
	// The scripts know a partition by the base of its keys.
	byBase := make(map[string]int, len(s.db.Parts))
	for i, p := range s.db.Parts {
		byBase[p.Base] = i
	}
	out := make(chan store.Wakeup)
	go func() {
		defer close(out)
		defer func() { _ = sub.Close() }() // nothing is left to be done
		messages := sub.Channel(redis.WithChannelHealthCheckInterval(checkEvery))
		for {
			select {
			// Pub/Sub has no memory: messages published while the connection was away are gone, and the
			// periodic look of the daemon makes up for them.
			case <-ctx.Done():
				return
			case m, ok := <-messages:
				if !ok {
					return
				}
				if w, ok := parseWakeup(m.Payload, byBase); ok {
					pass(ctx, out, w)
				}
			}
		}
	}()
	return out, nil
}

// In place of a due time: what withdraw.lua writes, and what scripts that place a task of level 1 do. A version that does not know it looks at
// what is due.
const (
	withdrawn = 2
	urgent    = 3
)

// parseWakeup reads a message of layout.lua: the base of a partition's keys and a due time.
// Messages of other programs on the channel are skipped.
func parseWakeup(payload string, byBase map[string]int) (store.Wakeup, bool) {
	base, ms, _ := strings.Cut(payload, " ")
	due, err := strconv.ParseInt(ms, 10, 64)
	p, known := byBase[base]
	w := store.Wakeup{Partition: p, Due: moment.Millis(due)}
	w.Withdrawn, w.Urgent = due == withdrawn, due == urgent
	if w.Withdrawn || w.Urgent {
		w.Due = 0
	}
	return w, err == nil && known
}

// pass waits until the reader takes the wake-up, or the subscription ends.
func pass(ctx context.Context, out chan<- store.Wakeup, w store.Wakeup) {
	select {
	case out <- w:
	case <-ctx.Done():
	}
}
