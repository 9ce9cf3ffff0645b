package core

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Tables of decisions: they need no scheduler, no store and no clock.

const (
	decidedAt = store.Millis(1_772_366_400_000)
	dueAt     = decidedAt - 1000
)

// factsOf are the facts of a first run of a task that was due a second ago, has run for 100 ms and has ended now.
func factsOf(b record.Body) facts {
	return facts{
		now: decidedAt, clock: decidedAt.Time(), claimedAt: decidedAt - 100, attempt: 1, body: &body{b}, state: &state{}, tally: &store.RunStat{}, process: "p",
		claimed: &store.Claimed{Run: store.Run{Agent: "a", ID: "1"}, Kind: "k", Level: LevelLow, Due: dueAt, Submitted: dueAt},
		kind: &KindConfig{
			MaxAttempts: 3, Backoff: time.Second, MaxBackoff: time.Minute, MaxRetryAfters: 2, PauseAfter: 2, Grace: time.Minute, Spread: time.Minute,
			CatchUp: 2,
		},
		next: func(_ cronSpec, after store.Millis) (store.Millis, error) { // every minute
			return after - after%60_000 + 60_000, nil
		},
		random: func(most time.Duration) time.Duration { return most },
		ran:    true, took: 100 * time.Millisecond,
	}
}

// decided is the verdict on a run.
func decided(f facts, err error) verdict {
	d, v := &decision{facts: f}, verdict{}
	d.decide(&v, err)
	return v
}

func TestDecide(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	once, every := record.Body{}, record.Body{Every: time.Hour}
	slots := record.Body{Every: 10 * time.Second, FromStart: true}
	cron := record.Body{Cron: "* * * * *"}
	quiet := record.Body{Activity: &record.Activity{Pulse: store.Pulse{Delay: time.Minute}, MaxFailures: 2}}
	after := func(d time.Duration) store.When { return store.When{After: d} }
	at := func(m store.Millis) store.When { return store.When{At: m} }
	for name, c := range map[string]struct {
		body    record.Body
		given   func(f *facts)
		err     error
		verb    store.Verb
		due     store.When
		outcome Outcome
		check   func(t *testing.T, v *verdict, s *state)
	}{
		"success":                      {body: once, verb: store.VerbComplete, outcome: OutcomeSuccess},
		"success of an interval":       {body: every, verb: store.VerbAgain, due: after(time.Hour), outcome: OutcomeSuccess},
		"success of slots":             {body: slots, verb: store.VerbAgain, due: at(dueAt + 10_000), outcome: OutcomeSuccess},
		"success of cron":              {body: cron, verb: store.VerbAgain, due: at(decidedAt - decidedAt%60_000 + 60_000), outcome: OutcomeSuccess},
		"success of an activity rests": {body: quiet, verb: store.VerbRest, due: at(decidedAt.Add(restFor)), outcome: OutcomeSuccess},
		"first failure":                {body: once, err: boom, verb: store.VerbAgain, due: after(time.Second), outcome: OutcomeFailed},
		"second failure": {
			body: once, err: boom, given: func(f *facts) { f.state.Attempt, f.attempt = 1, 2 }, verb: store.VerbAgain, due: after(2 * time.Second),
			outcome: OutcomeFailed,
		},
		"last failure": {
			body: once, err: boom, given: func(f *facts) { f.state.Attempt, f.attempt = 2, 3 }, verb: store.VerbFail, outcome: OutcomeFailed,
			check: func(t *testing.T, v *verdict, _ *state) {
				t.Helper()
				rec, err := record.DecodeFinished(v.settlement.Record)
				require.NoError(t, err)
				assert.Equal(t, "attempts", rec.Reason)
			},
		},
		"no retry":             {body: once, err: SkipRetry(boom), verb: store.VerbFail, outcome: OutcomeFailed},
		"cancelled by handler": {body: every, err: Cancel(boom), verb: store.VerbCancel, outcome: OutcomeCancelled},
		"snooze":               {body: once, err: Snooze(time.Minute), verb: store.VerbAgain, due: after(time.Minute), outcome: OutcomeSnoozed},
		"yield": {
			body: once, err: Yield(7, time.Second), verb: store.VerbAgain, due: after(time.Second), outcome: OutcomeYielded,
			check: func(t *testing.T, _ *verdict, s *state) { t.Helper(); assert.Equal(t, "7", string(s.Checkpoint)) },
		},
		"next in": {body: every, err: NextIn(2 * time.Hour), verb: store.VerbAgain, due: after(2 * time.Hour), outcome: OutcomeSuccess},
		"retry after": {
			body: once, err: RetryAfter(decidedAt.Time().Add(time.Minute), boom), verb: store.VerbAgain, due: after(time.Minute + time.Second),
			outcome: OutcomeSnoozed,
			check:   func(t *testing.T, _ *verdict, s *state) { t.Helper(); assert.Zero(t, s.Attempt, "uncharged") },
		},
		"retry after with a key": {
			body: record.Body{LimitKey: "openai"}, err: RetryAfter(decidedAt.Time().Add(time.Minute), boom), verb: store.VerbAgain,
			due: after(time.Minute + time.Second), outcome: OutcomeSnoozed,
			check: func(t *testing.T, v *verdict, _ *state) {
				t.Helper()
				require.NotNil(t, v.busy)
				assert.Equal(t, store.Target{Key: "openai"}, v.busy.Target)
				assert.Equal(t, after(time.Minute), v.busy.Until)
			},
		},
		"retry after too often": {
			body: once, err: RetryAfter(decidedAt.Time().Add(time.Minute), boom), given: func(f *facts) { f.state.RetryAfters = 2 },
			verb: store.VerbAgain, due: after(time.Minute + 4*time.Second), outcome: OutcomeFailed,
			check: func(t *testing.T, _ *verdict, s *state) { t.Helper(); assert.Equal(t, 1, s.Attempt, "charged") },
		},
		"interval that fails stretches": {body: record.Body{Every: time.Second}, err: boom, verb: store.VerbAgain, due: after(2 * time.Second), outcome: OutcomeFailed},
		"interval that fails again is paused": {
			body: every, err: boom, given: func(f *facts) { f.state.Failures = 1 }, verb: store.VerbAgain, due: after(time.Hour), outcome: OutcomeFailed,
			check: func(t *testing.T, v *verdict, _ *state) {
				t.Helper()
				assert.Equal(t, Order{By: byDuly, Reason: "2 occurrences in a row failed: boom"}, decodeHold(v.settlement.Hold))
			},
		},
		"activity that fails too often cools down": {
			body: quiet, err: boom, given: func(f *facts) { f.state.Failures = 1 }, verb: store.VerbAgain, due: at(decidedAt.Add(leastCoolDown)),
			outcome: OutcomeFailed,
			check: func(t *testing.T, v *verdict, _ *state) {
				t.Helper()
				assert.Equal(t, reasonOf(v), store.ReasonCooling)
			},
		},
		"end of the pull": {
			body: once, err: ErrStopping, verb: store.VerbRelease, due: at(dueAt),
			check: func(t *testing.T, _ *verdict, s *state) { t.Helper(); assert.Zero(t, s.Attempt, "uncharged") },
		},
		"end of the pull before its start": {
			body: once, err: ErrStopping, given: func(f *facts) { f.ran = false }, verb: store.VerbRelease, due: at(dueAt),
			check: func(t *testing.T, _ *verdict, s *state) {
				t.Helper()
				assert.Zero(t, s.Runs.Len(), "nothing has happened")
			},
		},
		"cut off for the third time": {
			body: once, err: ErrStopping, verb: store.VerbAgain, due: at(dueAt),
			given: func(f *facts) {
				f.state.CutOffs, f.budget = mostCutOffs-1, budget{spent: true, nearlyAll: true, left: 9 * time.Second, whole: 10 * time.Second}
			},
			check: func(t *testing.T, v *verdict, _ *state) {
				t.Helper()
				assert.True(t, v.tooLong)
				assert.Contains(t, decodeHold(v.settlement.Hold).Reason, "too_long: it was cut off 3 times in a row after nearly all of 10s")
			},
		},
		"told to end": {
			body: every, verb: store.VerbCancel, outcome: OutcomeCancelled,
			given: func(f *facts) {
				order := (&record.Hold{By: "ann", Kind: "k", Level: LevelLow}).Encode()
				f.order = &order
			},
		},
		"skipped by its gate": {body: record.Body{Every: time.Second}, err: &skippedError{reason: skipGate}, verb: store.VerbAgain, due: after(2 * time.Second), outcome: OutcomeSkipped},
		"missed slots are passed over": {
			body: slots, given: func(f *facts) { f.claimed.Due, f.claimedAt = decidedAt-35_000, decidedAt-1 }, verb: store.VerbAgain,
			due: at(decidedAt + 5000), outcome: OutcomeSuccess,
			check: func(t *testing.T, _ *verdict, s *state) { t.Helper(); assert.EqualValues(t, 3, s.SkipCount) },
		},
		"one that fell due meanwhile is queued": {
			body: record.Body{Every: 10 * time.Second, FromStart: true, Overlap: string(OverlapQueueOne)}, verb: store.VerbAgain,
			given: func(f *facts) { f.claimed.Due, f.claimedAt = decidedAt-35_000, decidedAt-35_000 },
			due:   at(decidedAt), outcome: OutcomeSuccess,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOf(c.body)
			if c.given != nil {
				c.given(&f)
			}
			v := decided(f, c.err)
			assert.Equal(t, string(c.verb), string(v.settlement.Verb))
			assert.Equal(t, c.due, v.settlement.Due)
			assert.Equal(t, c.outcome, v.outcome)
			if c.check != nil {
				c.check(t, &v, f.state)
			}
		})
	}
}

// reasonOf is why an activity task may not run before a time.
func reasonOf(v *verdict) store.Reason { return v.settlement.Floor.Reason }

// What comes too late is skipped, or put off once; what was told to end, or has rested for long enough, is not started.
func TestDecideEarly(t *testing.T) {
	t.Parallel()
	late := func(f *facts) { f.claimed.Due = decidedAt - 3_600_000 }
	for name, c := range map[string]struct {
		body  record.Body
		given func(f *facts)
		early bool
		verb  store.Verb
	}{
		"on time":            {body: record.Body{Every: time.Hour}},
		"late, and once":     {given: late},
		"late and recurring": {body: record.Body{Every: time.Hour}, given: late, early: true, verb: store.VerbAgain},
		"late for the second time": {
			body: record.Body{Every: time.Hour}, given: func(f *facts) { late(f); f.state.Spread = true },
		},
		"late, to be skipped": {body: record.Body{Every: time.Hour, Misfire: string(MisfireSkip)}, given: late, early: true, verb: store.VerbAgain},
		"late after an attempt": {
			body: record.Body{Every: time.Hour, Misfire: string(MisfireSkip)}, given: func(f *facts) { late(f); f.state.Attempt = 1 },
		},
		"told to end": {given: func(f *facts) { f.claimed.Cancelled = true }, early: true, verb: store.VerbCancel},
		"rested": {
			body:  record.Body{Activity: &record.Activity{}},
			given: func(f *facts) { f.state.Retire = dueAt }, early: true, verb: store.VerbComplete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOf(c.body)
			f.ran = false
			if c.given != nil {
				c.given(&f)
			}
			d, v := &decision{facts: f}, verdict{}
			early := d.decideEarly(&v)
			assert.Equal(t, c.early, early)
			if early {
				assert.Equal(t, string(c.verb), string(v.settlement.Verb))
			}
		})
	}
}

// A verdict that the store refuses is revised; what has been noted of the run stays.
func TestRevise(t *testing.T) {
	t.Parallel()
	f := factsOf(record.Body{Every: time.Hour})
	v, again := decided(f, nil), decision{facts: f}
	tally := v.settlement.Tally
	assert.False(t, again.revise(&v, ErrLeaseLost), "that is for the settler")
	require.True(t, again.revise(&v, store.ErrReplaced))
	assert.Equal(t, string(store.VerbAgain), string(v.settlement.Verb))
	assert.True(t, v.settlement.Renewed)
	assert.Same(t, tally, v.settlement.Tally)
	require.True(t, again.revise(&v, &store.EndingError{Order: (&record.Hold{By: "ann"}).Encode()}))
	assert.Equal(t, string(store.VerbCancel), string(v.settlement.Verb))
	rec, err := record.DecodeFinished(v.settlement.Record)
	require.NoError(t, err)
	assert.Equal(t, "cancelled by ann", rec.Reason)
}
