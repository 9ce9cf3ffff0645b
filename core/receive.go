package core

// Messages of senders that deliver at least once: each is carried out once, even if several processes receive it.

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/message"
)

// Message is one delivery of a sender's message.
type Message struct {
	Sender, ID string // together the same at each delivery
	Content    []byte // everything that it asks for: a message keeps its content
	// Until is when the proof of its sender runs out, so that it would be refused anyway. By then processes whose clocks differ by
	// less than ten minutes have forgotten nothing that one of them would take.
	Until time.Time
	// Within is how long carrying it out may take at most: if its process dies, another delivery is taken after that.
	Within time.Duration
}

// Reception says what to do with a delivery.
type Reception string

// The states of a message.
const (
	ReceptionNew       Reception = "new"       // carry it out, then report that by Receipt.End
	ReceptionDuplicate Reception = "duplicate" // it was carried out: nothing is left to do
	ReceptionBusy      Reception = "busy"      // another delivery of it is being carried out
	ReceptionDiffers   Reception = "differs"   // it asked for something else before
)

// wrongClocks is how much longer than necessary a message is remembered, as the clocks of processes differ.
const wrongClocks = 10 * time.Minute

// Receipt is a message that was taken. It is used by one goroutine.
type Receipt struct {
	s     *Scheduler
	of    message.Receipt
	keeps time.Duration
}

// Receive takes a message for one of its deliveries, in one call of the store, and says what to do. Its receipt is nil unless the message
// is new. An error means that nothing is known of the message, and that nothing may be done for it: it has to be delivered again.
func (s *Scheduler) Receive(ctx context.Context, m Message) (Reception, *Receipt, error) {
	keeps := max(m.Until.Sub(s.config.Clock.Now()), 0) + wrongClocks
	r := message.Receipt{
		Message: digestOf([]byte(m.Sender), []byte(m.ID)), By: rand.Text()[:store.NonceLen], Content: digestOf(m.Content),
		State: message.Begun, For: min(m.Within, keeps),
	}
	known, err := s.store.Receive(ctx, r)
	switch {
	case err != nil:
		return "", nil, err
	case known.State == 0:
		return ReceptionNew, &Receipt{s, r, keeps}, nil
	case known.Content != r.Content:
		return ReceptionDiffers, nil, nil
	case known.State == message.Done:
		return ReceptionDuplicate, nil, nil
	default:
		return ReceptionBusy, nil, nil
	}
}

// receiptKey is the key of a message in a context.
type receiptKey struct{}

// Context is the context for carrying the message out. A signal that is sent with it is sent once, also if the process dies before End and the message
// is delivered again: one for each message and agent.
func (r *Receipt) Context(ctx context.Context) context.Context {
	return context.WithValue(ctx, receiptKey{}, r)
}

// broughtBy is the message for which a call is made, and how long it is remembered; empty for none. What a run does is its own.
func broughtBy(ctx context.Context) (string, time.Duration) {
	r, ok := ctx.Value(receiptKey{}).(*Receipt)
	if !ok || originOf(ctx) != nil {
		return "", 0
	}
	return r.of.Message, r.keeps
}

// End notes whether the message was carried out: if not, it may be delivered again at once. It is called exactly once, also if the
// context of the delivery is done by then. Until it has returned nil the message may be carried out again, by a delivery that comes when the
// time within which it had to be is over.
func (r *Receipt) End(ctx context.Context, done bool) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), base.LongestLook)
	defer cancel()
	r.of.State = message.Dropped
	if done {
		r.of.State, r.of.For = message.Done, r.keeps
	}
	_, err := r.s.store.Receive(ctx, r.of)
	return err
}

// digestOf is a short name for values that name something together only.
func digestOf(parts ...[]byte) string {
	h := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256(part)
		h.Write(sum[:])
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}
