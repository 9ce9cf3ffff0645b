package logs

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// answers are what a source answers, each once and the last one again and again.
type answers struct {
	all   []any
	asked []inspect.OutputFrom
}

func (a *answers) Output(_ context.Context, _, _ string, from inspect.OutputFrom) (inspect.Output, error) {
	a.asked = append(a.asked, from)
	one := a.all[0]
	if len(a.all) > 1 {
		a.all = a.all[1:]
	}
	if err, failed := one.(error); failed {
		return inspect.Output{}, err
	}
	return one.(inspect.Output), nil
}

func answer(status store.Status, run store.Fence, text string, end int64, ended bool) inspect.Output {
	return inspect.Output{Status: status, Printed: inspect.Printed{Run: run, Text: text, End: end, Ended: ended}}
}

// A run is followed to its end, over failures that pass, into the run that takes it over; the end of a process that died is not waited for.
func TestFollow(t *testing.T) {
	t.Parallel()
	away, fatal := errors.New("away"), errors.New("fatal")
	const waiting, running, failed = store.StatusWaiting, store.StatusInProgress, store.StatusFailed
	for name, c := range map[string]struct {
		all  []any
		want string
		took time.Duration
		err  error
	}{
		"it has ended":         {all: []any{answer(failed, 1, "a", 1, true)}, want: "a"},
		"it ends":              {all: []any{answer(running, 1, "a", 1, false), answer(running, 1, "", 1, false), answer(running, 1, "b", 2, true), answer(failed, 1, "", 2, true)}, want: "ab", took: 1500 * time.Millisecond},
		"it has not begun":     {all: []any{answer(waiting, 0, "", 0, false), answer(running, 0, "", 0, false), answer(running, 1, "a", 1, false), answer(waiting, 1, "", 1, true)}, want: "a", took: 1500 * time.Millisecond},
		"the next one runs":    {all: []any{answer(running, 1, "a", 1, true), answer(running, 2, "b", 1, false), answer(waiting, 2, "", 1, true)}, want: "a|b", took: time.Second},
		"it died":              {all: []any{answer(running, 1, "a", 1, false), answer(waiting, 1, "", 1, false), answer(running, 1, "", 1, false), answer(running, 2, "b", 1, false), answer(failed, 2, "", 1, true)}, want: "a|b", took: 2 * time.Second},
		"its end was lost":     {all: []any{answer(failed, 1, "a", 1, false), answer(failed, 1, "", 1, false)}, want: "a", took: 5500 * time.Millisecond},
		"it printed nothing":   {all: []any{answer(failed, 0, "", 0, false)}, took: 5500 * time.Millisecond},
		"the store goes away":  {all: []any{answer(running, 1, "a", 1, false), away, away, answer(failed, 1, "b", 2, true)}, want: "ab", took: 1500 * time.Millisecond},
		"the store stays away": {all: []any{answer(running, 1, "a", 1, false), away}, want: "a", took: 61 * time.Second, err: away},
		"it is away":           {all: []any{away}, err: away},
		"it is deleted":        {all: []any{answer(running, 1, "a", 1, false), fatal}, want: "a", took: 500 * time.Millisecond, err: fatal},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var b strings.Builder
				source := &answers{all: c.all}
				f := Follower{
					Source: source, Agent: "ada", ID: "t", Retry: func(err error) bool { return errors.Is(err, away) },
					Print: func(o *inspect.Output) error { b.WriteString(o.Text); return nil }, Begun: func(*inspect.Output) { b.WriteString("|") },
				}
				begun := time.Now()
				require.ErrorIs(t, f.Follow(t.Context()), c.err)
				assert.Equal(t, c.want, b.String())
				assert.Equal(t, c.took, time.Since(begun))
				assert.Zero(t, source.asked[0])
			})
		})
	}
}

// A signal ends it without an error, and what is asked is what follows.
func TestFollowUntilCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		source := &answers{all: []any{answer(store.StatusInProgress, 7, "a", 1, false)}}
		f := Follower{Source: source, Print: func(*inspect.Output) error { return nil }}
		require.NoError(t, f.Follow(ctx))
		assert.Equal(t, inspect.OutputFrom{Run: 7, After: 1}, source.asked[1])
	})
}

// A terminal gets text and colours, and nothing that moves its cursor or sets its title.
func TestVisible(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "a\tb\n\x1b[31mred\x1b[0m\n10%\n20%\n\\x1b]0;title\\ab é", visible("a\tb\r\n\x1b[31mred\x1b[0m\n10%\r20%\n\x1b]0;title\ab é"))
	var b strings.Builder
	require.NoError(t, Write(&b, "\x1b[2J\r"))
	assert.Equal(t, "\x1b[2J\r", b.String(), "a program gets what was printed")
}
