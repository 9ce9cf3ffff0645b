package core_test

// Limits as users of core set, read and explain them; what they bound is tested by the contract of stores.

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// A limit is explained with what it is about, what it allows, what is used of it, and when the next starts.
func TestExplainNamesTheLimit(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1, Clock: clock}), core.Config{Clock: clock})
	require.NoError(t, err)
	reasons := make(chan model.Because, 2)
	explain := func(ctx context.Context) {
		e, err := s.Explain(ctx, "b", "2")
		assert.NoError(t, err)
		reasons <- e.Reasons[0]
	}
	core.Handle(s, "k", func(ctx context.Context, task *core.Task[any]) error {
		if task.Agent == "a" {
			_, err := s.RunDue(ctx, core.Scope{}) // another pull, which finds the limit used up
			assert.NoError(t, err)
			explain(ctx)
			assert.NoError(t, s.LiftLimit(ctx, core.LimitTarget{Kind: "k"}))
			explain(ctx)
		}
		return nil
	})
	ctx := t.Context()
	require.NoError(t, s.SetLimits(ctx, core.Limit{About: core.LimitTarget{Kind: "k"}, Concurrency: 1, Rate: 30, Per: time.Minute}))
	_, err = s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k"}, core.NewTask{Agent: "b", ID: "2", Kind: "k"})
	require.NoError(t, err)
	_, err = s.RunDue(ctx, core.Scope{})
	require.NoError(t, err)
	limited := <-reasons
	assert.Equal(t, model.BecauseLimited, limited.Code)
	assert.Equal(t, `the limit on kind "k" holds it back: 1 run at once and 30 starts per 1m; 1 running, 1 task in line; the next starts when a run ends`,
		limited.Text)
	assert.Equal(t, `it waited for the limit on kind "k", which has been lifted: the next claim takes it`, (<-reasons).Text)
}

// A rate without a bound of runs says when the next start is.
func TestExplainSaysWhenTheRateAllowsTheNext(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 1, Clock: clock}), core.Config{
		Clock: clock, Limits: []core.Limit{{About: core.LimitTarget{Key: "openai:*", Each: core.EachKey}, Rate: 1, Per: time.Hour, Burst: -1}},
	})
	require.NoError(t, err)
	core.Handle(s, "k", nothing)
	for _, id := range []string{"1", "2"} {
		_, err = s.Submit(t.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k", LimitKey: "openai:x"})
		require.NoError(t, err)
	}
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	e, err := s.Explain(t.Context(), "a", "2")
	require.NoError(t, err)
	assert.Regexp(t, `^the limit on each limit key "openai:\*" holds it back: 1 start per 1h; 0 running, 1 task in line; the next starts at `, e.Reasons[0].Text)
	assert.Equal(t, clock.Now().Add(time.Hour).Truncate(time.Second), e.Reasons[0].Until.Truncate(time.Second))
}

// Limits that make no sense are refused before any store call, by the field that is wrong.
func TestLimitsAreChecked(t *testing.T) {
	t.Parallel()
	many := make([]core.Limit, bound.MostLimits+1)
	for field, limits := range map[string][]core.Limit{
		"Limits[0].concurrency": {{}},
		"Limits[0].rate":        {{Concurrency: 1, Burst: 1}},
		"Limits[0].per":         {{Rate: 1}},
		"Limits[0].limit_key":   {{About: core.LimitTarget{Key: "a*b"}, Concurrency: 1}},
		"Limits[0].each":        {{About: core.LimitTarget{Each: "task"}, Concurrency: 1}},
		"Limits[1]":             {{Concurrency: 1}, {Concurrency: 2}},
		"Limits":                many,
	} {
		_, err := core.New(memstore.New(memstore.Config{}), core.Config{Limits: limits})
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong, field)
		assert.Equal(t, field, wrong.Field, err.Error())
	}
	one := []core.Limit{{Concurrency: 1}}
	for _, partitions := range []int{1, 4} {
		_, err := core.New(memstore.New(memstore.Config{Partitions: partitions}), core.Config{Limits: one})
		assert.NoError(t, err)
	}
}

// What a limit shows can be set again, and says the same: also a burst of none.
func TestARateIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bound.Limit{
		"60/1m": {Rate: 60, Per: time.Minute}, "1/250ms": {Rate: 1, Per: 250 * time.Millisecond}, "5/1h30m": {Rate: 5, Per: 90 * time.Minute},
		"2/24h": {Rate: 2, Per: 24 * time.Hour}, "7/1m10s": {Rate: 7, Per: 70 * time.Second}, "": {},
	} {
		assert.Equal(t, text, want.RateText())
		if text == "" {
			continue
		}
		rate, per, err := core.ParseRate(text)
		require.NoError(t, err)
		assert.Equal(t, want, bound.Limit{Rate: rate, Per: per})
		shown, err := json.Marshal(bound.LimitUse{Limit: want})
		require.NoError(t, err)
		assert.JSONEq(t, `{"rate":"`+text+`","burst":0,"running":0,"waiting":0}`, string(shown))
	}
	for _, text := range []string{"", "60", "60/", "/1m", "0/1m", "-1/1m", "60/0s", "60/-1m", "60/m", "60 per minute", "1.5/1m", "60/1m/2", "60/1us", "60/745h", strings.Repeat("9", 99)} {
		_, _, err := core.ParseRate(text)
		var wrong *core.InvalidError
		require.ErrorAs(t, err, &wrong, text)
		assert.Equal(t, "rate", wrong.Field)
		assert.Less(t, len(err.Error()), 140, "a long one is cut off")
	}
}

// Each target has a name that reads as part of a sentence.
func TestTargetsOfLimitsHaveNames(t *testing.T) {
	t.Parallel()
	for want, about := range map[string]core.LimitTarget{
		"everything": {}, `kind "k"`: {Kind: "k"}, `limit key "s"`: {Key: "s"}, "each agent": {Each: core.EachAgent}, "each limit key": {Each: core.EachKey, Key: "*"},
		`kind "k" with limit key "s"`:               {Kind: "k", Key: "s"},
		`each agent of kind "k"`:                    {Kind: "k", Each: core.EachAgent},
		`each agent with limit key "s"`:             {Key: "s", Each: core.EachAgent},
		`each agent of kind "k" with limit key "s"`: {Kind: "k", Key: "s", Each: core.EachAgent},
		`each limit key "openai:*" of kind "k"`:     {Kind: "k", Key: "openai:*", Each: core.EachKey},
	} {
		assert.Equal(t, want, about.String())
	}
}
