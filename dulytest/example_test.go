package dulytest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/dulytest"
)

type Digest struct {
	Topic string `json:"topic"`
}

// WriteDigest is the handler that the examples test.
func WriteDigest(_ context.Context, t *core.Task[Digest]) error {
	if t.Payload.Topic == "" {
		return core.Cancel(errors.New("no topic"))
	}
	if err := t.SetProgress(0.5); err != nil {
		return err
	}
	return t.SetResult("a digest about " + t.Payload.Topic)
}

func ExampleNewTask() {
	task := dulytest.NewTask(Digest{Topic: "engines"})
	err := WriteDigest(context.Background(), task)
	text, _ := dulytest.Result[string](task)
	done, _ := dulytest.Progress[float64](task)
	fmt.Println(err, text, done)

	fmt.Println(WriteDigest(context.Background(), dulytest.NewTask(Digest{})))
	// Output:
	// <nil> a digest about engines 0.5
	// no topic
}

func ExampleResume() {
	handler := func(_ context.Context, t *core.Task[Digest]) error {
		var page int
		if _, err := t.Checkpoint(&page); err != nil {
			return err
		}
		return t.SetResult(fmt.Sprint("continued at page ", page))
	}
	task, _ := dulytest.Resume(Digest{Topic: "engines"}, 7)
	err := handler(context.Background(), task)
	text, _ := dulytest.Result[string](task)
	fmt.Println(err, text)
	// Output: <nil> continued at page 7
}

// A test has a *testing.T for t.
func ExampleScheduler() {
	var t testing.TB = &probe{}
	s := dulytest.New(t, core.Config{})
	core.Handle(s.Scheduler, "digest", WriteDigest)
	_, _ = s.Submit(t.Context(), core.NewTask{Agent: "ada", ID: "daily", Kind: "digest", Payload: Digest{Topic: "looms"}, Delay: time.Hour})
	fmt.Println("completed:", s.RunDue(t).Completed)

	s.Clock.Advance(time.Hour)
	fmt.Println("completed:", s.RunDue(t).Completed)
	// Output:
	// completed: 0
	// completed: 1
}

func ExampleStore_Fail() {
	var t testing.TB = &probe{}
	s := dulytest.New(t, core.Config{})
	s.Store.Fail("Submit", errors.New("connection refused"))
	_, err := s.Submit(t.Context(), core.NewTask{Agent: "ada", Kind: "digest"})
	fmt.Println(core.CodeOf(err), err)
	// Output: unavailable submit: connection refused
}
