package gcf_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
)

// Requests under way end by themselves if there is time; no others begin.
func TestADrainWaits(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	release, begun := make(chan struct{}), make(chan struct{})
	core.Handle(f.scheduler, "gated", func(context.Context, *core.Task[any]) error {
		close(begun)
		<-release
		return nil
	})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "gated"})
	answered, drained := make(chan int, 1), make(chan error, 1)
	go func() {
		status, _ := f.scheduled(t, "", "duly", at)
		answered <- status
	}()
	<-begun
	go func() { drained <- f.function.Drain(t.Context()) }()
	assert.Eventually(t, func() bool {
		status, _ := f.call(t, request(t, "/x", ""))
		return status == 503
	}, 10*time.Second, time.Millisecond, "nothing new begins")
	status, text := result(f.function.Event(t.Context(), newEvent(t, "com.example.tick", `{"kind":"tick"}`)))
	assert.Equal(t, 503, status, text)
	select {
	case <-drained:
		t.Fatal("a request is under way")
	default:
	}
	close(release)
	require.NoError(t, <-drained)
	assert.Equal(t, 200, <-answered)
	assert.Equal(t, core.StatusCompleted, f.status(t, "ada", "1"))
	require.NoError(t, f.function.Drain(t.Context()), "again it is done at once")
}

// When the time is over the tasks under way are given back, uncharged.
func TestADrainEnds(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{Margin: 10 * time.Second})
	f.submit(t, core.NewTask{Agent: "ada", ID: "1", Kind: "slow"})
	answered := make(chan map[string]any, 1)
	go func() {
		_, answer := f.scheduled(t, "", "duly", at)
		answered <- answer
	}()
	<-f.begun
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, f.function.Drain(ctx), context.Canceled)
	assert.Equal(t, core.StatusWaiting, f.status(t, "ada", "1"), "when it returns that is done")
	assert.EqualValues(t, 1, (<-answered)["released"])
}

func TestADrainWithNothingUnderWay(t *testing.T) {
	t.Parallel()
	f := setup(t, gcf.Config{})
	require.NoError(t, f.function.Drain(t.Context()))
	status, _ := f.scheduled(t, "", "duly", at)
	assert.Equal(t, 503, status)
	assert.Zero(t, f.store.claims())
}
