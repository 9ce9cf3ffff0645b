package filestore

// What the tests of this package see besides.

import (
	"bytes"

	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// State is the state of a store as bytes.
func State(s *Store) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []byte
	_ = memstore.StateOf(s.mem).Write(func(piece []byte) error {
		out = append(out, piece...)
		return nil
	})
	return out
}

// Schemas describe the calls in a journal, and the state in a snapshot.
func Schemas() []string {
	all := []string{memstore.StateSchema()}
	for _, v := range verbs {
		all = append(all, v.schema())
	}
	return all
}

// Abandon ends a store as a kill would: nothing more is written. What is answered was written before.
func Abandon(s *Store) {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	close(s.stop)
	s.ended.Wait()
	_ = s.journal.out.Close()
	_ = unlock(s.lock)
}

// WithPoint has a function called at each place at which a process may die.
func WithPoint(c Config, point func(name string) error) Config {
	c.point = point
	return c
}

// Otherwise is a journal whose last frame has the fingerprint of another state.
func Otherwise(journal []byte) []byte {
	last := journal[bytes.LastIndex(journal, []byte(mark)):]
	setCheck(last, 7)
	seal(last)
	return journal
}

// WithRoom has the disk of a store have so many bytes free.
func WithRoom(c Config, room func() int64) Config {
	c.room = room
	return c
}

// WithMostContent bounds what one write takes.
func WithMostContent(c Config, most int) Config {
	c.most = most
	return c
}
