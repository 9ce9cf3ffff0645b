package core_test

// Findings are made of figures alone.

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/server"
)

// Each bound decides on its own side.
func TestWhatIsWrong(t *testing.T) {
	t.Parallel()
	now := time.Now()
	h := inspect.Health{Stats: inspect.Stats{Now: now, NextDue: now.Add(-59 * time.Second)}}
	assert.Zero(t, h.Overdue())
	assert.Equal(t, inspect.SeverityOK, h.Work().Severity)
	h.Stats.NextDue = now.Add(-time.Minute)
	assert.Equal(t, inspect.SeverityFailed, h.Work().Severity)
	assert.Contains(t, h.Work().Message, "due for 1m0s and no process has claimed it")
	h.Processes = []model.Process{{Slots: 10, InUse: 8}, {Slots: 2, InUse: 2}} // they are there: who starts one more looks elsewhere first
	assert.Contains(t, h.Work().Message, "of the 12 slots of 2 processes 10 are in use")
	h.Processes = nil

	h.Hour.Kinds = []inspect.KindWindow{{Kind: "few", Runs: 9, Failures: 9}, {Kind: "half", Runs: 10, Failures: 5}, {Kind: "less", Runs: 100, Failures: 49}}
	assert.Len(t, h.Failing(), 1)
	assert.Equal(t, "half", h.Failing()[0].Kind)

	st := inspect.Stats{Now: now, LastTrimmed: now.Add(-7*24*time.Hour - time.Second)}
	assert.False(t, st.TrimmedLately())
	st.LastTrimmed = now.Add(-7 * 24 * time.Hour)
	assert.True(t, st.TrimmedLately())
	assert.Equal(t, inspect.SeverityWarning, st.History().Severity)

	limits := []bound.LimitUse{{Waiting: 1}, {Waiting: 1, Running: 1}, {}, {Limit: core.Limit{Rate: 1}, Waiting: 1}}
	assert.Len(t, inspect.Idle(limits), 1)
	assert.True(t, h.Busy(), "nobody has a slot")
	h.Processes = []model.Process{{Name: "a", Slots: 1, InUse: 1, Abandoned: 2}, {Name: "b", Slots: 1}}
	assert.False(t, h.Busy())
	n, process := h.Abandoned()
	assert.Equal(t, []any{2, "a"}, []any{n, process})

	for loss, f := range map[server.Loss]server.Facts{
		server.LosesNothing: {Eviction: "noeviction", AppendOnly: "yes"}, server.LosesUnknown: {AppendOnly: "no"},
		server.LosesSome: {Eviction: "volatile-lru", AppendOnly: "no", Save: "3600 1"}, server.LosesTasks: {Eviction: "allkeys-lru", AppendOnly: "no", SaveKnown: true},
	} {
		assert.Equal(t, []server.Loss{loss, loss}, []server.Loss{f.Evicts(), f.Forgets()}, "%+v", f)
	}
}

// said are servers that say something.
type said []server.Facts

// Facts is what they say.
func (s said) Facts(context.Context) ([]server.Facts, error) { return s, nil }

// The gravest server decides; those that are well hide none that is not.
func TestTheGravestServerDecides(t *testing.T) {
	t.Parallel()
	fine := server.Facts{Node: "fine", Eviction: "noeviction", AppendOnly: "yes", Memory: 90, MaxMemory: 100}
	some := server.Facts{Node: "some", Eviction: "volatile-lru", AppendOnly: "no", Save: "3600 1"}
	bad := server.Facts{Node: "bad", Eviction: "allkeys-lru", AppendOnly: "no", SaveKnown: true, Memory: 91, MaxMemory: 100}
	for _, c := range []struct {
		servers said
		want    [3]inspect.Severity // of eviction, persistence and memory
	}{
		{said{fine}, [3]inspect.Severity{inspect.SeverityOK, inspect.SeverityOK, inspect.SeverityOK}},
		{said{fine, some, fine}, [3]inspect.Severity{inspect.SeverityWarning, inspect.SeverityWarning, inspect.SeverityOK}},
		{said{some, bad, fine, some}, [3]inspect.Severity{inspect.SeverityFailed, inspect.SeverityWarning, inspect.SeverityWarning}},
	} {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{Servers: c.servers})
		require.NoError(t, err)
		found := map[string]inspect.Severity{}
		for _, f := range s.Diagnose(t.Context()) {
			found[f.Check] = f.Severity
		}
		assert.Equal(t, c.want, [3]inspect.Severity{found["eviction"], found["persistence"], found["memory"]})
	}
}

// An agent that has more than half of what runs is named while tasks of others have been due for more than a minute, and not before.
func TestTheAgentThatStarvesOthersIsNamed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, err := core.New(memstore.New(memstore.Config{}), core.Config{Concurrency: 6, Kinds: map[string]core.KindConfig{"hang": {Timeout: time.Hour}}})
		require.NoError(t, err)
		core.Handle(s, "hang", func(ctx context.Context, _ *core.Task[any]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		for i := range 10 {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: "flood", ID: strconv.Itoa(i), Kind: "hang"})
			require.NoError(t, err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = s.RunDue(ctx, core.Scope{})
		}()
		synctest.Wait()
		for _, agent := range []string{"bob", "eve"} {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, Kind: "hang"})
			require.NoError(t, err)
		}
		found := func() string {
			for _, f := range s.Diagnose(t.Context()) {
				if f.Check == "shares" {
					return string(f.Severity) + ": " + f.Message
				}
			}
			return ""
		}
		assert.Equal(t, "ok: no agent has more than half of the runs while others are overdue", found())
		time.Sleep(2 * time.Minute)
		assert.Regexp(t, `^warning: agent "flood" has (\d) of the \d runs under way, and tasks of 2 other agents have been due for more than a minute$`, found())
		stop()
		<-ended
	})
}
