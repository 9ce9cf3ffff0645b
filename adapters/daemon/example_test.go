package daemon_test

import (
	"context"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A daemon runs the tasks of all agents of its store as they fall due.
func ExampleNew() {
	store := memstore.New(memstore.Config{})
	s, err := core.New(store, core.Config{})
	if err != nil {
		panic(err)
	}
	ran := make(chan string)
	core.Handle(s, "remind", func(_ context.Context, t *core.Task[string]) error {
		ran <- t.Agent + ": " + t.Payload
		return nil
	})
	d, err := daemon.New(s, daemon.Config{Waker: store})
	if err != nil {
		panic(err)
	}
	if err := d.Start(); err != nil {
		panic(err)
	}
	ctx := context.Background()
	if _, err := s.Submit(ctx, core.NewTask{Agent: "ada", Kind: "remind", Payload: "tea", Delay: 20 * time.Millisecond}); err != nil {
		panic(err)
	}
	fmt.Println(<-ran)
	fmt.Println(d.Stop(ctx))
	// Output:
	// ada: tea
	// <nil>
}

// A process that is one agent has a timer of its own: it runs its tasks, and leaves those of others alone.
func ExampleConfig_oneAgent() {
	store := memstore.New(memstore.Config{})
	s, err := core.New(store, core.Config{})
	if err != nil {
		panic(err)
	}
	ran := make(chan string)
	core.Handle(s, "think", func(_ context.Context, t *core.Task[string]) error {
		ran <- t.Agent
		return nil
	})
	ctx := context.Background()
	if _, err := s.Submit(ctx, core.NewTask{Agent: "bob", Kind: "think"}, core.NewTask{Agent: "ada", Kind: "think"}); err != nil {
		panic(err)
	}
	d, err := daemon.New(s, daemon.Config{Waker: store, Agents: []string{"ada"}})
	if err != nil {
		panic(err)
	}
	if err := d.Start(); err != nil {
		panic(err)
	}
	fmt.Println("ran", <-ran)
	if err := d.Stop(ctx); err != nil {
		panic(err)
	}
	stats, err := s.Stats(ctx)
	fmt.Println(stats.Completed, "completed,", stats.Waiting, "waits", err)
	// Output:
	// ran ada
	// 1 completed, 1 waits <nil>
}
