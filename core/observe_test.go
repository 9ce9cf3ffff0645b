package core_test

// What the answers of several partitions say of the store's clock.

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The answers to one call come together, and some are older than others, as when a node of a cluster was quick and another slow. A pull
// takes the latest of their times: by an older one an agent that is due at the moment of its answer would not be due yet, and the pull
// would end with work left.
func TestOlderAnswersDoNotTurnTheClockBack(t *testing.T) {
	virtual(t, core.Config{Concurrency: 2, Urgent: -1}, func(w *world) {
		core.Handle(w.s, "work", func(context.Context, *core.Task[any]) error {
			time.Sleep(200 * time.Millisecond)
			return nil
		})
		const floods = 40
		slow, quick := "a", "b"
		for i := 0; store.PartitionOf(quick, 8) == store.PartitionOf(slow, 8); i++ {
			quick = fmt.Sprint("b", i)
		}
		for i := range floods {
			w.submit(core.NewTask{Agent: slow, ID: fmt.Sprint(i), Kind: "work"})
		}
		time.Sleep(time.Millisecond)
		for i := range floods {
			w.submit(core.NewTask{Agent: quick, ID: fmt.Sprint(i), Kind: "work"})
		}
		w.store.alter = func(claims []store.Claim) {
			for i := range claims {
				if claims[i].Partition == store.PartitionOf(quick, 8) {
					claims[i].Now = claims[i].Now.Add(-50 * time.Millisecond)
				}
			}
		}
		report, err := w.s.RunDue(w.Context(), core.Scope{Agents: []string{slow, quick}, MaxDuration: 5 * time.Second})
		assert.NoError(t, err)
		assert.Equal(t, 2*floods*5/8, report.Ran, "two at a time, for as long as it may")
	})
}
