package decide

// The idle back-off as a pure decision: whatever the schedule, the answers and the clock, asked on the schedule's own times.

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for range 20_000 {
		b := model.IdleBackoff{Factor: 1 + rand.Float64()*rand.Float64()*99, Max: time.Duration(rand.Int64N(int64(check.MaxDelay)))}
		base := time.Duration(1 + rand.Int64N(int64(1000*time.Hour)))
		idle := int(math.Exp(rand.Float64() * 40)) // up to more than any task is ever asked
		got := b.Distance(base, idle)
		require.GreaterOrEqual(t, got, base, "%v %v %d", b, base, idle)
		require.LessOrEqual(t, got, max(base, b.Max))
		require.LessOrEqual(t, got, b.Distance(base, idle+1), "never sooner after another no")
		require.Equal(t, base, b.Distance(base, 0))
	}
	assert.Equal(t, 4*time.Minute, model.IdleBackoff{}.Distance(time.Minute, 2))
	assert.Equal(t, 5*time.Minute, model.IdleBackoff{}.Distance(time.Minute, math.MaxInt))
}

// A cron expression, in whatever zone and across changes of the clocks, is asked about on its own times, the first that is far
// enough away; the distance to it is bounded by the cap and what the expression leaves free.
func TestCronOccurrencesAreLeftOut(t *testing.T) {
	t.Parallel()
	exprs := []string{"* * * * *", "*/7 * * * *", "0 * * * *", "30 1,2,3 * * *", "15 9-17 * * 1-5", "0 0 * * *", "*/10 * * * * *", "0 12 1 * *"}
	zones := []string{"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo"}
	random := rand.New(rand.NewPCG(1, 2))
	kept := &plan.Crons{}
	for range 3000 {
		spec := record.Body{Cron: exprs[random.IntN(len(exprs))], Zone: zones[random.IntN(len(zones))]}
		f := factsOf(spec)
		f.Next = kept.Next
		f.Kind.IdleBackoff = model.IdleBackoff{Factor: 1 + 4*random.Float64(), Max: time.Duration(1 + random.Int64N(int64(72*time.Hour)))}
		f.State.Idle = random.IntN(12)
		// Half of them close to a change of the clocks.
		begin := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(random.Int64N(int64(365 * 24 * time.Hour))))
		if random.IntN(2) == 0 {
			begin = time.Date(2026, []time.Month{time.March, time.April, time.October, time.November}[random.IntN(4)], 1+random.IntN(31), random.IntN(24), 0, 0, 0, time.UTC)
		}
		nominal, err := kept.Next(f.Body.Spec(), moment.Of(begin))
		require.NoError(t, err)
		f.Claimed.Due, f.ClaimedAt, f.Now = nominal, nominal, nominal.Add(time.Second)
		if random.IntN(2) == 0 { // the gate took long to answer, or nobody was there to ask it
			f.Now = nominal.Add(time.Duration(random.Int64N(int64(100 * time.Hour))))
		}
		idle := f.State.Idle
		due := decided(f, &plan.SkippedError{Reason: plan.SkipGate}).Settlement.Due.At
		require.Equal(t, idle+1, f.State.Idle)
		require.Equal(t, due, f.State.Nominal)

		first := func(after moment.Millis) moment.Millis {
			at, err := kept.Next(f.Body.Spec(), after)
			require.NoError(t, err)
			return at
		}
		require.Equal(t, due, first(due-1), "%v: on its own times", spec.Cron)
		next := first(nominal)
		want := f.Kind.IdleBackoff.Distance(min(next.Sub(nominal), first(next).Sub(next)), idle+1)
		require.Equal(t, first(max(nominal.Add(want)-1, f.Now)), due, "%s %s: the first that is far enough away, and not past", spec.Cron, spec.Zone)
	}
}

// Slots that are counted from the start stay on their grid.
func TestSlotsAreLeftOut(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		every := time.Duration(1+random.Int64N(7200)) * time.Second
		f := factsOf(record.Body{Every: every, FromStart: true})
		f.Kind.IdleBackoff = model.IdleBackoff{Factor: 1 + 4*random.Float64(), Max: time.Duration(1 + random.Int64N(int64(24*time.Hour)))}
		f.State.Idle = random.IntN(12)
		f.Claimed.Due, f.ClaimedAt, f.Now = dueAt, dueAt, dueAt+1
		wait := f.Kind.IdleBackoff.Distance(max(every, f.Kind.Backoff), f.State.Idle+1)
		due := decided(f, &plan.SkippedError{Reason: plan.SkipGate}).Settlement.Due.At
		require.Zero(t, due.Sub(dueAt)%every, "on the grid")
		require.GreaterOrEqual(t, due.Sub(dueAt), wait.Truncate(time.Millisecond))
		require.Less(t, due.Sub(dueAt), wait+every)
	}
}
