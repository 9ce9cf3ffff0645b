package redisstore_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

func TestFirst(t *testing.T) {
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL})
	require.NoError(t, err)
	defer st.Close()
	s, err := core.New(st, core.Config{Concurrency: 100, OnEvent: func(e core.Event) { }})
	require.NoError(t, err)
	n := 0
	core.Handle(s, "note", func(ctx context.Context, tk *core.Task[map[string]string]) error {
		n++
		if tk.ID == "bad" { return fmt.Errorf("boom") }
		return nil
	})
	_, err = s.Submit(t.Context(), core.NewTask{Agent: "a1", ID: "x", Kind: "note", Payload: map[string]string{"a": "b"}, Group: "g"},
		core.NewTask{Agent: "a1", ID: "bad", Kind: "note", MaxAttempts: 1},
		core.NewTask{Agent: "a:{}2", ID: "y", Kind: "note", Every: 2*time.Second},
		core.NewTask{Agent: "a3", ID: "z", Kind: "other"})
	require.NoError(t, err)
	rep, err := s.RunDue(t.Context(), core.Scope{})
	fmt.Printf("%+v %v\n", rep, err)
	info, err := s.Task(t.Context(), "a1", "x")
	fmt.Printf("%+v %v\n", info, err)
	info, err = s.Task(t.Context(), "a1", "bad")
	fmt.Printf("%+v %v\n", info, err)
	info, err = s.Task(t.Context(), "a:{}2", "y")
	fmt.Printf("%+v %v\n", info, err)
	g, err := s.Group(t.Context(), "a1", "g")
	fmt.Println(g, err)
	st2, err := s.Stats(t.Context())
	fmt.Printf("%+v %v\n", st2, err)
	_, err = s.Replay(t.Context(), "a1", "bad")
	require.NoError(t, err)
	rep, err = s.RunDueTasks(t.Context(), []string{"a1"})
	fmt.Printf("%+v %v\n", rep, err)
	c := srv.Client(t)
	fmt.Println(c.Keys(t.Context(), "*").Val())
}
