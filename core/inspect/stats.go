package inspect

// Counters of the store, as users of core see them.

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store/count"
)

// Stats are the counters of a whole store, and of each kind of its tasks.
type Stats struct {
	count.Counters

	Now         time.Time   // by the store's clock
	NextDue     time.Time   // when the first waiting task is due; zero for never
	LastTrimmed time.Time   // when a finished record was last dropped before its time for lack of room; zero for never
	Kinds       []KindStats // by name
}

// KindStats are the counters of one kind of task.
type KindStats struct {
	count.KindCounters

	Failed []RecentFailure // the last failed runs, newest first
}

// RecentFailure is a failed run in the statistics of its kind.
type RecentFailure struct {
	At               time.Time
	Agent, ID, Error string
}

// Stats returns the counters of the store. Reading them costs the same however many tasks there are.
func (s *View) Stats(ctx context.Context) (Stats, error) {
	st, err := s.base.Store.Stats(ctx)
	out := Stats{Counters: st.Counters, Now: st.Now.Time(), NextDue: st.NextDue.Time(), LastTrimmed: st.LastTrimmed.Time()}
	for _, k := range st.Kinds {
		kind := KindStats{KindCounters: k.KindCounters}
		for _, f := range k.Failed {
			note := record.DecodeFailure(f.Note)
			kind.Failed = append(kind.Failed, RecentFailure{At: f.At.Time(), Agent: note.Agent, ID: note.ID, Error: note.Error})
		}
		out.Kinds = append(out.Kinds, kind)
	}
	return out, err
}
