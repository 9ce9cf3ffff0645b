package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// A process that has no settings of the kind tells of activity too: the task of the subject has the rule, whatever parts of the subject the kind tells
// apart. It has none for a subject that was never active.
func TestTheTaskKnowsItsRule(t *testing.T) {
	for dimensions := range 4 {
		t.Run(fmt.Sprint(dimensions), func(t *testing.T) {
			rule := core.Activity{Quiet: 10 * time.Minute, MaxWait: 25 * time.Minute, MinInterval: time.Hour, Dimensions: dimensions, Level: core.LevelHigh}
			virtual(t, activity(rule), func(w *world) { w.noticeWithoutRule() })
		})
	}
}

// noticeWithoutRule tells of activity at a process that does not know the kind.
func (w *world) noticeWithoutRule() {
	got := w.digests(fine)
	bare, err := core.New(w.store, core.Config{})
	require.NoError(w, err)
	notice := func() model.Noticed {
		n, err := bare.Notice(w.Context(), "digest", ann)
		require.NoError(w, err)
		return n
	}
	_, err = bare.Notice(w.Context(), "digest", ann)
	require.Equal(w, core.CodeInvalid, core.CodeOf(err), "no process has said how yet")
	first := w.notice(ann)
	for range 2 {
		w.runUntil(9 * time.Minute)
		n := notice()
		assert.Equal(w, [2]string{first.Agent, first.ID}, [2]string{n.Agent, n.ID})
		assert.Equal(w, store.ReasonWaiting, n.Reason)
	}
	w.runUntil(9 * time.Minute)
	n := notice()
	assert.True(w, n.Scheduled)
	assert.Equal(w, store.ReasonInterval, n.Reason)
	info := w.task(n.Agent, n.ID)
	assert.Equal(w, core.LevelHigh, info.Level)
	assert.JSONEq(w, `{"user_id":"ann","device_id":"phone","agent_id":"helper"}`, string(info.Payload))
	assert.Equal(w, time.Now().UnixMilli(), info.LastActivity.UnixMilli())
	w.runUntil(time.Hour)
	assert.Equal(w, []time.Duration{25 * time.Minute, 85 * time.Minute}, *got, "debounced, but not beyond the longest wait, nor before the interval is over")
	_, err = bare.Notice(w.Context(), "digest", core.Subject{User: "bob"})
	assert.Equal(w, core.CodeInvalid, core.CodeOf(err), "this one was never active")
	_, err = bare.Notice(w.Context(), "other", ann)
	assert.Equal(w, core.CodeInvalid, core.CodeOf(err), "this kind is another one")
}
