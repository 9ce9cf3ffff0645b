package redisstore

// The layout key of a prefix that is being moved to another number of partitions, and which process may open it meanwhile.

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// The phases of a move. Until the copies are whole nothing of the partitions is touched; from then on nothing but the copies counts.
const (
	copying  = "copying"
	undoing  = "undoing"  // the copies are dropped: a move begins with that too
	dropping = "dropping" // the originals
	placing  = "placing"  // the copies, in place of the originals
)

// moving is the field of the same name of the layout key, while duly repartition has not ended.
type moving struct {
	From    int    `json:"from"`
	To      int    `json:"to"`
	Phase   string `json:"phase"`
	Version string `json:"version"` // of the layout: its own field keeps every process from opening the prefix
	Attempt int64  `json:"attempt"` // the last one, which alone may continue; numbers only grow
	Copy    int64  `json:"copy"`    // the attempt that has made the copies
	Moved   Moved  `json:"moved"`   // known once the copies are whole

	stored string // how the layout key has it, empty if it does not
}

// Moved is how much a repartition moves: agents with live tasks, live tasks, and records of finished ones.
type Moved struct {
	Agents  int64 `json:"agents"`
	Tasks   int64 `json:"tasks"`
	Records int64 `json:"records"`
}

// movingOf reads the state of a move from a layout key; false if there is none.
func movingOf(fields map[string]string) (m *moving, moves bool, err error) {
	text := fields["moving"]
	if text == "" {
		return nil, false, nil
	}
	m = &moving{stored: text}
	err = json.Unmarshal([]byte(text), m)
	if err == nil && (!isPartitions(m.From) || !isPartitions(m.To)) {
		err = errors.New("its numbers of partitions are not powers of two")
	}
	return m, true, err
}

// isPartitions reports whether a store may have that many partitions.
func isPartitions(n int) bool { return n >= 1 && n <= maxPartitions && n&(n-1) == 0 }

// duringAMove refuses a prefix that is being moved, but to who moves it.
func (s *Store) duringAMove(key string, m *moving, err error) error {
	switch {
	case err != nil:
		return fmt.Errorf("the key %q is damaged: its field moving is %q (%w)", key, m.stored, err)
	case !s.config.moves:
		return fmt.Errorf("the prefix %q is being moved from %d to %d partitions: wait until duly repartition ends; if it was stopped, "+
			"run duly repartition --to %d --yes again", s.config.Prefix, m.From, m.To, m.To)
	}
	version, err := strconv.Atoi(m.Version)
	if err != nil || version < oldestLayout || version > layoutVersion {
		return fmt.Errorf("the prefix %q has layout version %q, but this binary reads versions %d to %d: use a binary of that version",
			s.config.Prefix, m.Version, oldestLayout, layoutVersion)
	}
	s.db.Parts = layout.PartitionsOf(s.config.Prefix, m.From)
	return nil
}

// tooFar reports whether a move cannot be undone any more.
func (m *moving) tooFar() bool { return m.Phase == dropping || m.Phase == placing }

// errOvertaken ends an attempt that a later one has taken over from. It has changed nothing since.
var errOvertaken = errors.New("another duly repartition has taken over: let that one end")

// turnLayout changes the layout key if no other attempt has changed it since it was read: two attempts at the same time never both continue.
// ARGV are the field moving as it was, as it becomes, then version, the partitions that were, and those that become.
const turnLayout = `
redis.call('HDEL', KEYS[1], '') -- the first write is one that is allowed when memory is full
if (redis.call('HGET', KEYS[1], 'moving') or '') ~= ARGV[1] or redis.call('HGET', KEYS[1], 'partitions') ~= ARGV[4] then return 0 end
redis.call('HSET', KEYS[1], 'moving', ARGV[2], 'version', ARGV[3], 'partitions', ARGV[5])
if ARGV[2] == '' then redis.call('HDEL', KEYS[1], 'moving') end
return 1`

// closed is the value of the field version during a move. Older binaries refuse it, as it is no number, and show it.
func (m *moving) closed() string {
	return fmt.Sprintf("%s, being moved to %d partitions: run duly repartition --to %d --yes to its end", m.Version, m.To, m.To)
}
