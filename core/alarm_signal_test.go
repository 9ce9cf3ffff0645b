package core_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// What a signal makes due starts at once where runs are welcome, and not with the alarm, which is a second ahead at least.
func TestASignalStartsAtOnceOnAHostWithAlarms(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, c)
		heard := make(chan time.Time, 1)
		core.Handle(s, "asks", func(_ context.Context, task *core.Task[note]) error {
			if _, waited := task.Heard(); !waited {
				return core.Await(core.Signal{Key: "answer", Timeout: time.Hour}, nil)
			}
			heard <- time.Now()
			return nil
		})
		end := s.AtOnce(c.Context(), core.AtOnce{})
		defer end()
		_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: "1", Kind: "asks"})
		require.NoError(c, err)
		_, err = s.RunDue(c.Context(), core.Scope{})
		require.NoError(c, err)
		time.Sleep(time.Minute)
		sent := time.Now()
		_, err = s.Signal(c.Context(), "a", "answer", nil)
		require.NoError(c, err)
		assert.Less(c, (<-heard).Sub(sent), 100*time.Millisecond)
	})
}
