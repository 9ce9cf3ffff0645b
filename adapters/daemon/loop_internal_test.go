package daemon

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// However many agents have something due, one after the other, the daemon looks for the others at its times: a pull that is
// for some looks too when a look is overdue, and else does not.
func TestAPullForSomeLooksForTheOthers(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	d, err := New(s, Config{Agents: []string{"ada"}})
	require.NoError(t, err)
	l := newLoop(d)
	t.Cleanup(l.jobs.end)
	for _, looks := range []bool{true, false, true} {
		if looks {
			l.lookedAt = d.config.Clock.Now().Add(-time.Minute)
		}
		require.NoError(t, d.MarkDirty("ada"))
		l.pull(t.Context())
		last := <-l.steps
		for !last.returned {
			last = <-l.steps
		}
		require.NoError(t, last.err)
		assert.Equal(t, []string{"ada"}, last.agents)
		assert.Equal(t, looks, last.look)
	}
}

// A wake-up for what only an order makes due hides nothing that is due for the agents of its partition.
func TestAWakeUpForNoTimeHidesNothing(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1}), core.Config{})
	require.NoError(t, err)
	d, err := New(s, Config{Agents: []string{"ada"}})
	require.NoError(t, err)
	l := newLoop(d)
	t.Cleanup(l.jobs.end)
	due := d.config.Clock.Now().Add(time.Minute)
	l.registry.members["ada"].next = due
	l.woken(store.Wakeup{Due: moment.Never})
	assert.Equal(t, due, l.registry.members["ada"].next)
}
