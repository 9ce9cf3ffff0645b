package redisstore

// Signals: messages to tasks that wait for them.

import (
	"context"
	"encoding/binary"
	"errors"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// verbSignal is the verb of errors.
const verbSignal = "signal"

// Signal resumes the waiting tasks; see [store.Signals].
func (s *Store) Signal(ctx context.Context, signals []store.Signal) ([]store.Signalled, error) {
	calls := make([]call.Call, len(signals))
	for i := range signals {
		n, rest := &signals[i], ""
		if n.Rest {
			rest = "1"
		}
		calls[i] = call.Call{Script: &s.db.Scripts.Signal, Partition: s.db.PartitionOf(n.Agent), Args: []any{
			layout.Encode(n.Agent), layout.Encode(n.Key), layout.Lengthened(nil, string(n.Note), string(n.Payload)), max(n.Keep.Milliseconds(), 1), rest,
			waitMark(n.Approval), n.ID, int64(n.Wait), n.Message, max(n.Remember.Milliseconds(), 1),
		}}
	}
	replies, err := s.db.Run(ctx, verbSignal, calls)
	if err != nil {
		return nil, err
	}
	out := make([]store.Signalled, len(signals))
	for i, reply := range replies {
		if len(reply) != 4 {
			return nil, call.Wrap(verbSignal, layout.ErrMalformed)
		}
		out[i] = store.Signalled{Code: store.SignalCode(layout.Number(reply[1])), Resumed: int(layout.Number(reply[2])), More: layout.Number(reply[3]) == 1}
	}
	return out, nil
}

// waitMark is how a wait is marked, and a signal that counts for it: those marked with an a count for all.
func waitMark(approval bool) string {
	if approval {
		return "a"
	}
	return "w"
}

// Heard returns what tasks have received; see [store.Signals]. It is kept where they wait.
func (s *Store) Heard(ctx context.Context, waits []store.Wait) ([]*store.Told, error) {
	ctx, cancel := s.db.Patience(ctx, "read")
	defer cancel()
	pipe := s.db.Client.Pipeline()
	answers := make([]*redis.Cmd, len(waits))
	for i, w := range waits {
		p := s.db.Parts[s.db.PartitionOf(w.Agent)]
		answers[i] = pipe.Do(ctx, "HGET", p.Key("awaits:"+layout.Encode(w.Agent)+":"+layout.Encode(w.Key)), w.ID)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, call.Wrap("read", err)
	}
	out := make([]*store.Told, len(waits))
	for i, a := range answers {
		said, err := a.Text()
		if err != nil && !errors.Is(err, redis.Nil) {
			return nil, call.Wrap("read", err)
		}
		if out[i], err = parseTold(said); err != nil {
			return nil, call.Wrap("read", err)
		}
	}
	return out, nil
}

// parseTold reads what a task has received; nil for nothing yet.
func parseTold(said string) (*store.Told, error) {
	said, told := strings.CutPrefix(said, "t")
	if !told {
		return nil, nil //nolint:nilnil // nothing yet
	}
	parts := make([][]byte, 2)
	for i := range parts {
		if len(said) < 4 {
			return nil, layout.ErrMalformed
		}
		n := 4 + int(binary.BigEndian.Uint32([]byte(said)))
		if n > len(said) {
			return nil, layout.ErrMalformed
		}
		parts[i], said = layout.Data(said[4:n]), said[n:]
	}
	return &store.Told{Note: parts[0], Payload: parts[1]}, nil
}
