package world_test

// Histories: that they replay, that every promise is kept in them, and that a fault in a store is found and told.

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/draw"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/shrink"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeds are how many histories are played of some: fewer in `make test`, as `.ci/run` plays all.
func seeds(all uint64) uint64 {
	if testing.Short() {
		return all / 4
	}
	return all
}

// Each seed is one history: played again it is the same, byte by byte.
func TestSeedsReplayExactly(t *testing.T) { //nolint:paralleltest // it plays on one processor
	if race.Enabled {
		t.Skip("the race detector shuffles goroutines: run it without")
	}
	for seed := range seeds(100) {
		first := world.Play(t, world.PlanOf(seed), stores.Memory, true)
		again := world.Play(t, world.PlanOf(seed), stores.Memory, true)
		for range 3 { // on a machine that is busy the runtime may take the processor from a goroutine in between, and another one is first
			if first.Story == again.Story {
				break
			}
			first, again = again, world.Play(t, world.PlanOf(seed), stores.Memory, true)
		}
		require.Equal(t, first.Story, again.Story, "seed %d", seed)
		require.Equal(t, first.Steps, again.Steps, "seed %d", seed)
	}
}

// enough are so many histories that nearly each invariant is tried in some, and most those that all have to be tried in; budget is how
// long they may take; with the race detector, which needs several times as long for each, they have a quarter of it.
const (
	enough = 1500
	most   = 6 * enough
	budget = 24 * time.Second
)

// Every promise is kept, and every invariant is tried.
func TestHistories(t *testing.T) { //nolint:paralleltest // as above
	tried := make([]int, len(world.Register()))
	began, seed, steps, budget := time.Now(), uint64(0), 0, budget
	if testing.Short() || race.Enabled {
		budget /= 4
	}
	for ; (seed < enough || seed < most && slices.Contains(tried, 0)) && time.Since(began) < budget; seed++ {
		r := world.Play(t, world.PlanOf(seed), stores.Memory, false)
		require.Nil(t, r.Breach, "seed %d", seed)
		steps += r.Steps
		for i, n := range r.Tried {
			tried[i] += n
		}
	}
	t.Logf("figure: %d histories of %d steps, %d invariants", seed, steps, len(tried))
	if seed < most && slices.Contains(tried, 0) { // the time was up
		return
	}
	for i, invariant := range world.Register() {
		assert.NotZero(t, tried[i], "%s was never tried", invariant.Name)
	}
}

// broke are seeds whose histories have broken a promise at some time.
var broke = []uint64{
	11000203, 11000960,
	108, 297, 2307, 3343, 8311, 9402, 11032, 12001, 15770, 20604, 502797, 3000571, 3007178, 4003730, 4010798, 4020359, 4021681, 4023420,
	4025616, 4026631, 4035278, 4037753, 4038854, 4039652, 4041093, 4041668, 4042160, 4042823, 4048965, 220, 424775, 960000668, 2909490580, 17655374, 27654522, 29219440, 37654145, 910002513, 920002827, 940000707, 940013088, 930003300, 4052023, 4057085, 4058414, 4058455,
	4058843, 4060150, 5005154, 5011723, 5017373, 5019408, 5020084, 5020949, 5022900, 5023089, 5025245, 5025790, 5027088, 5029813, 5030285,
	5030513, 5033933, 5034139, 5034523, 5034675, 5037546, 5038167, 5039382, 7009152, 7014233, 7017156, 8011366, 8016749, 20002451, 20008137, 30002170, 40003359, 50010184, 60052290, 70011898, 71012947, 73040207, 1042864609, 1042864845,
	2638271107, 50005214, 50009561, 3489815104, 614894584, 808, 1000, 1815, 3029692904, 501670, 571, 871, 77137, 78216, 1857, 91350058, 2109659675, 2109659737, 77001930, 123008732, 3200019781, 3700010922, 4500002679, 7700003734, 12000015777, 14000008327, 18000004787,
}

// What was broken once is kept from then on.
func TestHistoriesThatHaveBroken(t *testing.T) { //nolint:paralleltest // as above
	if race.Enabled {
		t.Skip("the race detector shuffles goroutines: run it without")
	}
	for _, seed := range broke {
		r := world.Play(t, world.PlanOf(seed), stores.Memory, false)
		require.Nil(t, r.Breach, "seed %d", seed)
	}
}

// The scripts keep them too.
func TestHistoriesOnRedis(t *testing.T) { //nolint:paralleltest // as above
	open := stores.Redis(t)
	for seed := range seeds(25) {
		r := world.Play(t, world.PlanOf(seed), open, false)
		require.Nil(t, r.Breach, "seed %d", seed)
	}
}

// A store in a folder keeps them too, while its process dies between calls.
func TestHistoriesInAFolder(t *testing.T) { //nolint:paralleltest // as above
	open := stores.Folder(t)
	n := seeds(25)
	if race.Enabled { // .ci/run plays them without
		n = min(n, 6)
	}
	for seed := range n {
		r := world.Play(t, world.PlanOf(seed), open, false)
		require.Nil(t, r.Breach, "seed %d", seed)
	}
}

// deaf is a store that answers heartbeats and does not keep the leases.
type deaf struct{ store.Store }

func (deaf) Extend(_ context.Context, leases []store.Extension) ([]store.Extended, error) {
	out := make([]store.Extended, len(leases))
	for i := range out {
		out[i].Held = true
	}
	return out, nil
}

// A fault is found, and what is left of the history when nothing can be left out still shows it.
func TestAFaultIsFoundAndShrunk(t *testing.T) { //nolint:paralleltest // as above
	open := func(s *draw.Settings, clock stores.Clock) (store.Store, error) {
		st, err := stores.Memory(s, clock)
		return deaf{st}, err
	}
	for seed := range uint64(100) {
		whole := world.PlanOf(seed)
		r := world.Play(t, whole, open, false)
		if r.Breach == nil {
			continue
		}
		small := shrink.History(t, whole, open)
		require.NotNil(t, small.Breach)
		assert.Equal(t, r.Breach.Name, small.Breach.Name)
		assert.Less(t, len(small.Plan.Requests), len(whole.Requests))
		assert.Contains(t, small.Story, "BREACH of "+r.Breach.Name)
		assert.Contains(t, small.Story, r.Breach.Sentence)
		again := world.Play(t, small.Plan, open, true)
		assert.Equal(t, small.Story, again.Story)
		return
	}
	t.Fatal("no history has found it")
}
