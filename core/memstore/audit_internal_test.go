package memstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Each place where a task would not be found again is told.
func TestAuditFinds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damage func(p *partition, t *task)
		want   audit.Code
	}{
		"out of its queue":         {func(p *partition, t *task) { p.lift(t) }, audit.Lost},
		"out of the agenda":        {func(p *partition, t *task) { p.agenda.remove(t.entry) }, audit.Asleep},
		"looked at too late":       {func(_ *partition, t *task) { t.entry.visit = 1 << 50 }, audit.Asleep},
		"under a lease of no one":  {func(_ *partition, t *task) { t.claim = &claim{term: &term{at: -1}} }, audit.Lost},
		"in a claim without it":    {func(_ *partition, t *task) { t.claim = &claim{term: &term{}} }, audit.Lost},
		"under a hold that is not": {func(p *partition, t *task) { p.lift(t); p.park(t, "@a:a") }, audit.Stranded},
	} {
		s := New(Config{Partitions: 1})
		_, err := s.Submit(t.Context(), []store.Submission{{Agent: "a", ID: "1", Kind: "k", Level: store.LevelLow, Due: moment.When{After: time.Hour}}})
		require.NoError(t, err)
		p := s.parts[0]
		assert.Empty(t, auditing{p, s.now()}.audit().Faults)
		c.damage(p, p.agents["a"].tasks["1"])
		assert.Equal(t, []audit.Fault{{Agent: "a", ID: "1", Code: c.want}}, auditing{p, s.now()}.audit().Faults, name)
	}
}

// Each counter that is wrong is told.
func TestAuditCounts(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(p *partition){
		"live":            func(p *partition) { p.live++ },
		"running":         func(p *partition) { p.running-- },
		"of a kind":       func(p *partition) { p.stats("k").Live-- },
		"of another kind": func(p *partition) { p.stats("other").Running++ },
		"of a group":      func(p *partition) { p.groups[[2]string{"a", "g"}].Live++ },
	} {
		s := New(Config{Partitions: 1})
		_, err := s.Submit(t.Context(), []store.Submission{{Agent: "a", ID: "1", Kind: "k", Group: "g", Level: store.LevelLow}})
		require.NoError(t, err)
		p := s.parts[0]
		assert.Empty(t, auditing{p, s.now()}.audit().Faults)
		damage(p)
		faults := auditing{p, s.now()}.audit().Faults
		require.Len(t, faults, 1, name)
		assert.Equal(t, audit.Miscounted, faults[0].Code, name)
	}
}
