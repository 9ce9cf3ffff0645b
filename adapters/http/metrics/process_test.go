package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/adaptertest"
	"github.com/seed-6f6f2c11/duly/adapters/http/metrics"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// What a process says of itself is in a scrape: its slots, the handlers that it had to abandon, and what it cannot reach.
func TestAProcessTellsOfItself(t *testing.T) {
	t.Parallel()
	store := &adaptertest.Partly{Store: memstore.New(memstore.Config{Partitions: 8})}
	settings := adaptertest.Stuck
	settings.Concurrency = 9
	w := newWorld(t, store, metrics.Config{}, settings, nil)
	p := w.scrape()
	assert.Zero(t, p.value("duly_abandoned_handlers"))
	assert.Zero(t, p.value("duly_partitions_away"))
	assert.Zero(t, p.value("duly_suspects"))
	assert.EqualValues(t, 9, p.value("duly_slots", "state", "free"))
	assert.Zero(t, p.value("duly_slots", "state", "in_use"))
	assert.Zero(t, p.value("duly_slots_of_one_agent"))

	adaptertest.Stick(t, w.s)
	store.SetAway(1, 4, 6)
	_, err := w.s.RunDue(t.Context(), core.Scope{})
	require.Equal(t, core.CodeUnavailable, core.CodeOf(err))
	p = w.scrape()
	assert.EqualValues(t, 1, p.value("duly_abandoned_handlers"))
	assert.EqualValues(t, 3, p.value("duly_partitions_away"))
}
