package dulyfile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A file may have more bytes of tasks than one call takes, also when they replace others.
func TestTheTasksOfAFileMayBeLarge(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	file := func(letter string) *File {
		trial, err := core.New(memstore.New(memstore.Config{}), core.Config{})
		require.NoError(t, err)
		var c File
		for i := range 24 {
			task := core.NewTask{Agent: "a", ID: fmt.Sprint(i), Kind: "k", Delay: time.Hour, Payload: strings.Repeat(letter, 200<<10)}
			_, err := trial.Submit(t.Context(), task)
			require.NoError(t, err)
			tried, err := trial.Task(t.Context(), "a", task.ID)
			require.NoError(t, err)
			c.Tasks = append(c.Tasks, Task{task: task, tried: tried})
		}
		return &c
	}
	for _, step := range []struct {
		letter string
		want   Applied
	}{{"a", Applied{Created: 24}}, {"a", Applied{}}, {"b", Applied{Changed: 24}}} {
		done, err := file(step.letter).Apply(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, step.want, done)
	}
}

// A start in between its attempts does not give a task all of them again: a host that keeps restarting would never be
// done with one that fails.
func TestAStartKeepsTheAttemptsOfATask(t *testing.T) {
	t.Parallel()
	for name, due := range map[string]time.Time{"past": time.Now().Add(-time.Hour), "now": time.Now()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := core.New(memstore.New(memstore.Config{}), core.Config{Default: core.KindConfig{Backoff: 5 * time.Minute}})
			require.NoError(t, err)
			core.Handle(s, "k", func(context.Context, *core.Task[any]) error { return errors.New("boom") })
			task := core.NewTask{Agent: "a", ID: "1", Kind: "k", At: due}
			start := func() Applied {
				trial, err := core.New(memstore.New(memstore.Config{}), core.Config{})
				require.NoError(t, err)
				_, err = trial.Submit(t.Context(), task)
				require.NoError(t, err)
				tried, err := trial.Task(t.Context(), "a", "1")
				require.NoError(t, err)
				done, err := (&File{Tasks: []Task{{task: task, tried: tried}}}).Apply(t.Context(), s)
				require.NoError(t, err)
				return done
			}
			assert.Equal(t, Applied{Created: 1}, start())
			time.Sleep(2 * time.Millisecond)
			assert.Equal(t, Applied{}, start(), "a time that has passed is the same one")
			_, _ = s.RunDue(t.Context(), core.Scope{})
			assert.Equal(t, Applied{}, start())
			info, err := s.Task(t.Context(), "a", "1")
			require.NoError(t, err)
			assert.Equal(t, 2, info.Attempt)
		})
	}
}
