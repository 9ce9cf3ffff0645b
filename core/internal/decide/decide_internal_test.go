package decide

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/outcome"
	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Tables of decisions: they need no scheduler, no store and no clock.

const (
	decidedAt = moment.Millis(1_772_366_400_000)
	dueAt     = decidedAt - 1000
)

// factsOf are the facts of a first run of a task that was due a second ago, has run for 100 ms and has ended now.
func factsOf(b record.Body) Facts {
	return Facts{
		Now: decidedAt, Clock: decidedAt.Time(), ClaimedAt: decidedAt - 100, Attempt: 1, Body: &codec.Body{Body: b}, State: &codec.State{}, Tally: &store.RunStat{}, Process: "p",
		Claimed: &store.Claimed{Run: store.Run{Agent: "a", ID: "1"}, Kind: "k", Level: store.LevelLow, Due: dueAt, Submitted: dueAt},
		Kind: &model.KindConfig{
			MaxAttempts: 3, Backoff: time.Second, MaxBackoff: time.Minute, MaxRetryAfters: 2, PauseAfter: 2, Grace: time.Minute, Spread: time.Minute,
			CatchUp: 2,
		},
		Next: func(_ codec.CronSpec, after moment.Millis) (moment.Millis, error) { // every minute
			return after - after%60_000 + 60_000, nil
		},
		Random: func(most time.Duration) time.Duration { return most },
		Ran:    true, Took: 100 * time.Millisecond,
	}
}

// decided is the verdict on a run.
func decided(f Facts, err error) Verdict {
	d, v := &Decision{Facts: f}, Verdict{}
	d.Decide(&v, err)
	return v
}

func TestDecide(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	once, every := record.Body{}, record.Body{Every: time.Hour}
	slots := record.Body{Every: 10 * time.Second, FromStart: true}
	cron := record.Body{Cron: "* * * * *"}
	quiet := record.Body{Activity: &record.Activity{Pulse: store.Pulse{Delay: time.Minute}, MaxFailures: 2}}
	after := func(d time.Duration) moment.When { return moment.When{After: d} }
	at := func(m moment.Millis) moment.When { return moment.When{At: m} }
	for name, c := range map[string]struct {
		body    record.Body
		given   func(f *Facts)
		err     error
		verb    store.Verb
		due     moment.When
		outcome model.Outcome
		check   func(t *testing.T, v *Verdict, s *codec.State)
	}{
		"success":                      {body: once, verb: store.VerbComplete, outcome: model.OutcomeSuccess},
		"success of an interval":       {body: every, verb: store.VerbAgain, due: after(time.Hour), outcome: model.OutcomeSuccess},
		"success of slots":             {body: slots, verb: store.VerbAgain, due: at(dueAt + 10_000), outcome: model.OutcomeSuccess},
		"success of cron":              {body: cron, verb: store.VerbAgain, due: at(decidedAt - decidedAt%60_000 + 60_000), outcome: model.OutcomeSuccess},
		"success of an activity rests": {body: quiet, verb: store.VerbRest, due: at(decidedAt.Add(check.RestFor)), outcome: model.OutcomeSuccess},
		"first failure":                {body: once, err: boom, verb: store.VerbAgain, due: after(time.Second), outcome: model.OutcomeFailed},
		"second failure": {
			body: once, err: boom, given: func(f *Facts) { f.State.Attempt, f.Attempt = 1, 2 }, verb: store.VerbAgain, due: after(2 * time.Second),
			outcome: model.OutcomeFailed,
		},
		"last failure": {
			body: once, err: boom, given: func(f *Facts) { f.State.Attempt, f.Attempt = 2, 3 }, verb: store.VerbFail, outcome: model.OutcomeFailed,
			check: func(t *testing.T, v *Verdict, _ *codec.State) {
				t.Helper()
				rec, err := record.DecodeFinished(v.Settlement.Record)
				require.NoError(t, err)
				assert.Equal(t, "attempts", rec.Reason)
			},
		},
		"no retry":             {body: once, err: outcome.SkipRetry(boom), verb: store.VerbFail, outcome: model.OutcomeFailed},
		"cancelled by handler": {body: every, err: outcome.Cancel(boom), verb: store.VerbCancel, outcome: model.OutcomeCancelled},
		"snooze":               {body: once, err: outcome.Snooze(time.Minute), verb: store.VerbAgain, due: after(time.Minute), outcome: model.OutcomeSnoozed},
		"yield": {
			body: once, err: outcome.Yield(7, time.Second), verb: store.VerbAgain, due: after(time.Second), outcome: model.OutcomeYielded,
			check: func(t *testing.T, _ *Verdict, s *codec.State) { t.Helper(); assert.Equal(t, "7", string(s.Checkpoint)) },
		},
		"next in": {body: every, err: outcome.NextIn(2 * time.Hour), verb: store.VerbAgain, due: after(2 * time.Hour), outcome: model.OutcomeSuccess},
		"retry after": {
			body: once, err: outcome.RetryAfter(decidedAt.Time().Add(time.Minute), boom), verb: store.VerbAgain, due: after(time.Minute + time.Second),
			outcome: model.OutcomeSnoozed,
			check:   func(t *testing.T, _ *Verdict, s *codec.State) { t.Helper(); assert.Zero(t, s.Attempt, "uncharged") },
		},
		"retry after with a key": {
			body: record.Body{LimitKey: "openai"}, err: outcome.RetryAfter(decidedAt.Time().Add(time.Minute), boom), verb: store.VerbAgain,
			due: after(time.Minute + time.Second), outcome: model.OutcomeSnoozed,
			check: func(t *testing.T, v *Verdict, _ *codec.State) {
				t.Helper()
				require.NotNil(t, v.Busy)
				assert.Equal(t, store.Target{Key: "openai"}, v.Busy.Target)
				assert.Equal(t, after(time.Minute), v.Busy.Until)
			},
		},
		"retry after too often": {
			body: once, err: outcome.RetryAfter(decidedAt.Time().Add(time.Minute), boom), given: func(f *Facts) { f.State.RetryAfters = 2 },
			verb: store.VerbAgain, due: after(time.Minute + 4*time.Second), outcome: model.OutcomeFailed,
			check: func(t *testing.T, _ *Verdict, s *codec.State) { t.Helper(); assert.Equal(t, 1, s.Attempt, "charged") },
		},
		"interval that fails stretches": {body: record.Body{Every: time.Second}, err: boom, verb: store.VerbAgain, due: after(2 * time.Second), outcome: model.OutcomeFailed},
		"interval that fails again is paused": {
			body: every, err: boom, given: func(f *Facts) { f.State.Failures = 1 }, verb: store.VerbAgain, due: after(time.Hour), outcome: model.OutcomeFailed,
			check: func(t *testing.T, v *Verdict, _ *codec.State) {
				t.Helper()
				assert.Equal(t, model.Order{By: check.ByDuly, Reason: "2 occurrences in a row failed: boom"}, codec.Order(v.Settlement.Hold))
			},
		},
		"activity that fails too often cools down": {
			body: quiet, err: boom, given: func(f *Facts) { f.State.Failures = 1 }, verb: store.VerbAgain, due: at(decidedAt.Add(check.LeastCoolDown)),
			outcome: model.OutcomeFailed,
			check: func(t *testing.T, v *Verdict, _ *codec.State) {
				t.Helper()
				assert.Equal(t, reasonOf(v), store.ReasonCooling)
			},
		},
		"end of the pull": {
			body: once, err: model.ErrStopping, verb: store.VerbRelease, due: at(dueAt),
			check: func(t *testing.T, _ *Verdict, s *codec.State) { t.Helper(); assert.Zero(t, s.Attempt, "uncharged") },
		},
		"end of the pull before its start": {
			body: once, err: model.ErrStopping, given: func(f *Facts) { f.Ran = false }, verb: store.VerbRelease, due: at(dueAt),
			check: func(t *testing.T, _ *Verdict, s *codec.State) {
				t.Helper()
				assert.Zero(t, s.Runs.Len(), "nothing has happened")
			},
		},
		"cut off for the third time": {
			body: once, err: model.ErrStopping, verb: store.VerbAgain, due: at(dueAt),
			given: func(f *Facts) {
				f.State.CutOffs, f.Budget = mostCutOffs-1, Budget{Spent: true, NearlyAll: true, Left: 9 * time.Second, Whole: 10 * time.Second}
			},
			check: func(t *testing.T, v *Verdict, _ *codec.State) {
				t.Helper()
				assert.True(t, v.TooLong)
				assert.Contains(t, codec.Order(v.Settlement.Hold).Reason, "too_long: it was cut off 3 times in a row after nearly all of 10s")
			},
		},
		"told to end": {
			body: every, verb: store.VerbCancel, outcome: model.OutcomeCancelled,
			given: func(f *Facts) {
				order := (&record.Hold{By: "ann", Kind: "k", Level: store.LevelLow}).Encode()
				f.Order = &order
			},
		},
		"skipped by its gate": {body: record.Body{Every: time.Second}, err: &plan.SkippedError{Reason: plan.SkipGate}, verb: store.VerbAgain, due: after(2 * time.Second), outcome: model.OutcomeSkipped},
		"missed slots are passed over": {
			body: slots, given: func(f *Facts) { f.Claimed.Due, f.ClaimedAt = decidedAt-35_000, decidedAt-1 }, verb: store.VerbAgain,
			due: at(decidedAt + 5000), outcome: model.OutcomeSuccess,
			check: func(t *testing.T, _ *Verdict, s *codec.State) { t.Helper(); assert.EqualValues(t, 3, s.SkipCount) },
		},
		"one that fell due meanwhile is queued": {
			body: record.Body{Every: 10 * time.Second, FromStart: true, Overlap: string(model.OverlapQueueOne)}, verb: store.VerbAgain,
			given: func(f *Facts) { f.Claimed.Due, f.ClaimedAt = decidedAt-35_000, decidedAt-35_000 },
			due:   at(decidedAt), outcome: model.OutcomeSuccess,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOf(c.body)
			if c.given != nil {
				c.given(&f)
			}
			v := decided(f, c.err)
			assert.Equal(t, string(c.verb), string(v.Settlement.Verb))
			assert.Equal(t, c.due, v.Settlement.Due)
			assert.Equal(t, c.outcome, v.Outcome)
			if c.check != nil {
				c.check(t, &v, f.State)
			}
		})
	}
}

// reasonOf is why an activity task may not run before a time.
func reasonOf(v *Verdict) store.Reason { return v.Settlement.Floor.Reason }

// What comes too late is skipped, or put off once; what was told to end, or has rested for long enough, is not started.
func TestDecideEarly(t *testing.T) {
	t.Parallel()
	late := func(f *Facts) { f.Claimed.Due = decidedAt - 3_600_000 }
	for name, c := range map[string]struct {
		body  record.Body
		given func(f *Facts)
		early bool
		verb  store.Verb
	}{
		"on time":            {body: record.Body{Every: time.Hour}},
		"late, and once":     {given: late},
		"late and recurring": {body: record.Body{Every: time.Hour}, given: late, early: true, verb: store.VerbAgain},
		"late for the second time": {
			body: record.Body{Every: time.Hour}, given: func(f *Facts) { late(f); f.State.Spread = true },
		},
		"late, to be skipped": {body: record.Body{Every: time.Hour, Misfire: string(model.MisfireSkip)}, given: late, early: true, verb: store.VerbAgain},
		"late after an attempt": {
			body: record.Body{Every: time.Hour, Misfire: string(model.MisfireSkip)}, given: func(f *Facts) { late(f); f.State.Attempt = 1 },
		},
		"told to end": {given: func(f *Facts) { f.Claimed.Cancelled = true }, early: true, verb: store.VerbCancel},
		"rested": {
			body:  record.Body{Activity: &record.Activity{}},
			given: func(f *Facts) { f.State.Retire = dueAt }, early: true, verb: store.VerbComplete,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := factsOf(c.body)
			f.Ran = false
			if c.given != nil {
				c.given(&f)
			}
			d, v := &Decision{Facts: f}, Verdict{}
			early := d.DecideEarly(&v)
			assert.Equal(t, c.early, early)
			if early {
				assert.Equal(t, string(c.verb), string(v.Settlement.Verb))
			}
		})
	}
}

// A verdict that the store refuses is revised; what has been noted of the run stays.
func TestRevise(t *testing.T) {
	t.Parallel()
	f := factsOf(record.Body{Every: time.Hour})
	v, again := decided(f, nil), Decision{Facts: f}
	tally := v.Settlement.Tally
	assert.False(t, again.Revise(&v, store.ErrLeaseLost), "that is for the settler")
	require.True(t, again.Revise(&v, store.ErrReplaced))
	assert.Equal(t, string(store.VerbAgain), string(v.Settlement.Verb))
	assert.True(t, v.Settlement.Renewed)
	assert.Same(t, tally, v.Settlement.Tally)
	require.True(t, again.Revise(&v, &store.EndingError{Order: (&record.Hold{By: "ann"}).Encode()}))
	assert.Equal(t, string(store.VerbCancel), string(v.Settlement.Verb))
	rec, err := record.DecodeFinished(v.Settlement.Record)
	require.NoError(t, err)
	assert.Equal(t, "cancelled by ann", rec.Reason)
}
