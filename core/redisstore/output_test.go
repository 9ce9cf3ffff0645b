package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// chunkOf is a chunk of task ada/t.
func chunkOf(fence store.Fence, number int64, data string) output.Chunk {
	return output.Chunk{Agent: "ada", ID: "t", Fence: fence, Number: number, Keep: 1, Claimed: 1, Piece: output.Piece{At: (number - 1) * int64(len(data)), Data: []byte(data)}}
}

// Output goes by itself when finished tasks are forgotten, counted from its last chunk, and so does the index of its agent.
func TestOutputLivesAsLongAsRecords(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	st := open(t, redisstore.Config{URL: srv.URL, Retention: time.Hour})
	lives := func(key string) time.Duration {
		d, err := c.PTTL(t.Context(), key).Result()
		require.NoError(t, err)
		return d
	}
	for number := range int64(2) {
		errs, err := st.Print(t.Context(), []output.Chunk{chunkOf(7, number+1, "x")})
		require.NoError(t, err)
		require.NoError(t, errs[0])
		assert.InDelta(t, time.Hour, lives("duly:{0}:output:0:ada:t"), float64(time.Minute))
		require.NoError(t, c.PExpire(t.Context(), "duly:{0}:output:0:ada:t", time.Minute).Err())
	}
	assert.InDelta(t, time.Hour, lives("duly:{0}:printed:ada"), float64(time.Minute))
}

// A run that prints nothing sends no command for that; one that ends within a second sends what it has printed once.
func TestCommandsOfOutput(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	s, err := core.New(open(t, redisstore.Config{URL: srv.URL}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "silent", func(context.Context, *core.Task[any]) error { return nil })
	core.Handle(s, "prints", func(_ context.Context, task *core.Task[any]) error {
		for range 1000 {
			fmt.Fprintln(task.Output(), "line")
		}
		return nil
	})
	run := func(kind string) map[string]int {
		return commandsIn(t, srv.Client(t), func() {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", Kind: kind, ID: kind + fmt.Sprint(time.Now().UnixNano())})
			require.NoError(t, err)
			_, err = s.RunDue(t.Context(), core.Scope{})
			require.NoError(t, err)
		})
	}
	run("silent") // the first pull asks for more
	silent, prints := run("silent"), run("prints")
	assert.Zero(t, silent["xadd"]+silent["zcard"])
	assert.Equal(t, [2]int{1, 1}, [2]int{prints["xadd"], prints["zcard"]})
	assert.Equal(t, silent["evalsha"], prints["evalsha"])
}

// A Redis that is full takes no output, and all else goes on.
func TestOutputOnAFullRedis(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	c := srv.Client(t)
	s, err := core.New(open(t, redisstore.Config{URL: srv.URL}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", func(_ context.Context, task *core.Task[any]) error {
		require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
		_, err := fmt.Fprintln(task.Output(), "line")
		return err
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "t", Kind: "k"})
	require.NoError(t, err)
	report, err := s.RunDue(t.Context(), core.Scope{})
	require.NoError(t, err)
	assert.Equal(t, 1, report.Completed)
	out, err := s.Output(t.Context(), "ada", "t", inspect.OutputFrom{})
	require.NoError(t, err)
	assert.Empty(t, out.Text)
}
