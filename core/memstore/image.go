package memstore

// The state as bytes, for a store that keeps it in a file.

import (
	"encoding/binary"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store/image"
)

// whole is how the whole store is written: all that decides how it answers, and neither who is connected nor the feed, which ends with its process.
var whole = image.Of((*Store)(nil), (*agent)(nil), (*task)(nil), (*entry)(nil), (*claim)(nil), (*term)(nil), (*bucket)(nil))

// State is what a store knows.
type State struct{ of *Store }

// StateOf is the state of a store.
func StateOf(s *Store) State { return State{s} }

// StateSchema describes the bytes of Write for ReadState, which may be that of another version.
func StateSchema() string { return whole.Schema() }

// Write hands the state over in pieces, each valid during its call. Calls of the store wait meanwhile. The same calls at the same times give the
// same bytes.
func (s State) Write(give func(piece []byte) error) error {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return whole.Write(s.of, give)
}

// ReadState is a store with a configuration, but for its Partitions, and the state whose pieces more returns. It fails with an
// *[image.UnknownError] if a newer version has written it, and with [image.ErrDamaged].
func ReadState(config Config, schema string, more func() ([]byte, error)) (*Store, error) {
	r, err := whole.Reader(schema)
	if err != nil {
		return nil, err
	}
	s := &Store{}
	if err := r.Read(s, more); err != nil {
		return nil, err
	}
	config.Partitions = len(s.parts)
	empty := New(config)
	s.config, s.watchers, s.processes, s.feed.secret = empty.config, empty.watchers, empty.processes, empty.config.FeedSecret
	if s.of = s; s.ofAgents == nil { // a version without outputs has written it
		s.ofAgents = map[string]map[string]*printed{}
	}
	for _, p := range s.parts {
		wire(p, s)
	}
	return s, nil
}

// wire gives a partition that was read what is not written.
func wire(p *partition, s *Store) {
	p.store = s
	p.agenda.less, p.leases.less = byVisit, byEnd
	for _, k := range p.parked {
		k.tasks.less = byDue
	}
	for _, a := range p.agents {
		for _, q := range a.levels {
			q.less = before
		}
	}
}

// Configure gives the store another configuration, but for its Clock and Partitions.
func (s State) Configure(config Config) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	config.Clock, config.Partitions = s.of.config.Clock, len(s.of.parts)
	s.of.config = config.withDefaults()
}

// Succeed has the store wake those who wait for wake-ups of another one, whose place it takes.
func (s State) Succeed(before *Store) {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	s.of.watchers = before.watchers
}

// Held reports whether any task is leased.
func (s State) Held() bool {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	return slices.ContainsFunc(s.of.parts, func(p *partition) bool { return p.running > 0 })
}

// Orphan ends all leases now and without notice, as their holders are known to be dead: the next claims take their tasks back. Runs of workers
// outside go on.
func (s State) Orphan() {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	now := s.of.now()
	for _, p := range s.of.parts {
		for _, t := range slices.Clone(p.leases.items) {
			if t.claim != nil && t.end > now && !strings.HasPrefix(t.claim.nonce, "w") {
				t.end, t.noticed = now, true
				p.leases.fix(t)
			}
		}
	}
}

// Fingerprint is a checksum over what nearly every call changes. Two stores that have answered the same calls differently will hardly have the same.
func (s State) Fingerprint() uint32 {
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	sum := uint32(0)
	for _, p := range s.of.parts {
		var b [7 * 8]byte
		for i, n := range []int64{p.clock, p.live, p.running, p.counts.Completed, p.counts.Failed, p.counts.Cancelled, int64(len(p.leases.items))} {
			binary.LittleEndian.PutUint64(b[i*8:], uint64(n)) //nolint:gosec // its bits are what counts
		}
		sum = crc32.Update(sum, crc32.IEEETable, b[:])
	}
	return sum
}
