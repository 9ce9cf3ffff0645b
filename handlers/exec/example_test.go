package exec_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
)

// A program runs the tasks of a kind. What it prints is the result.
func Example() {
	digest, err := exec.New(exec.Config{
		Argv:       []string{"sh", "-c", `echo "$DULY_AGENT_ID has a digest"`},
		WithoutEnv: []string{"DATABASE_PASSWORD"},
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		log.Fatal(err)
	}
	core.Handle(s, "digest", digest.Run)

	ctx := context.Background()
	if _, err := s.Submit(ctx, core.NewTask{Agent: "ada", ID: "1", Kind: "digest"}); err != nil {
		log.Fatal(err)
	}
	if _, err := s.RunDue(ctx, core.Scope{}); err != nil {
		log.Fatal(err)
	}
	task, err := s.Task(ctx, "ada", "1")
	fmt.Println(task.Status, string(task.Result), err)
	// Output: completed "ada has a digest" <nil>
}
