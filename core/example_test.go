package core_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

type digest struct {
	Topic string `json:"topic"`
}

func Example() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "digest", func(_ context.Context, t *core.Task[digest]) error {
		fmt.Printf("%s: a digest about %s\n", t.Agent, t.Payload.Topic)
		return nil
	})
	_, err = s.Submit(ctx,
		core.NewTask{Agent: "ada", ID: "morning", Kind: "digest", Payload: digest{Topic: "engines"}},
		core.NewTask{Agent: "ada", ID: "evening", Kind: "digest", Payload: digest{Topic: "looms"}, Delay: time.Hour},
	)
	if err != nil {
		panic(err)
	}
	report, err := s.RunDueTasks(ctx, []string{"ada", "bob"})
	if err != nil {
		panic(err)
	}
	fmt.Println("completed:", report.Completed)
	fmt.Println("next in:", s.Until(report.NextDueAt).Round(time.Minute))
	// Output:
	// ada: a digest about engines
	// completed: 1
	// next in: 1h0m0s
}

func ExampleScheduler_Task() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "sum", func(_ context.Context, t *core.Task[[]int]) error {
		sum := 0
		for _, n := range t.Payload {
			sum += n
		}
		return t.SetResult(sum)
	})
	_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: "1", Kind: "sum", Payload: []int{1, 2, 3}})
	_, _ = s.RunDue(ctx, core.Scope{})
	task, err := s.Task(ctx, "ada", "1")
	fmt.Println(task.Status, string(task.Result), err)
	// Output: completed 6 <nil>
}

// A handler prints what it does, for people: duly logs shows it while the run goes on.
func ExampleRunInfo_Output() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "report", func(_ context.Context, t *core.Task[any]) error {
		for page := range 3 {
			fmt.Fprintf(t.Output(), "page %d of 3\n", page+1)
		}
		return nil
	})
	_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: "monthly", Kind: "report"})
	_, _ = s.RunDueTasks(ctx, []string{"ada"})
	out, err := s.Output(ctx, "ada", "monthly", inspect.OutputFrom{})
	if err != nil {
		panic(err)
	}
	fmt.Print(out.Text)
	fmt.Println("complete:", out.Ended)
	// Output:
	// page 1 of 3
	// page 2 of 3
	// page 3 of 3
	// complete: true
}

func ExampleYield() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "import", func(_ context.Context, t *core.Task[struct{}]) error {
		page := 1
		if _, err := t.Checkpoint(&page); err != nil {
			return err
		}
		fmt.Println("page", page)
		if page < 3 {
			return core.Yield(page+1, 0)
		}
		return nil
	})
	_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", Kind: "import"})
	for {
		report, err := s.RunDue(ctx, core.Scope{})
		if err != nil || report.NextDueAt.IsZero() {
			break
		}
	}
	// Output:
	// page 1
	// page 2
	// page 3
}

func ExampleSnooze() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "poll", func(context.Context, *core.Task[struct{}]) error {
		return core.Snooze(10 * time.Minute) // not ready yet; no attempt is charged
	})
	_, _ = s.Submit(ctx, core.NewTask{Agent: "ada", ID: "1", Kind: "poll"})
	report, _ := s.RunDue(ctx, core.Scope{})
	task, _ := s.Task(ctx, "ada", "1")
	fmt.Println(report.Snoozed, task.Status, task.Attempt)
	// Output: 1 waiting 1
}

func ExampleHandleBatch() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.HandleBatch(s, "mem_read", func(_ context.Context, ts []*core.Task[string]) []error {
		fmt.Printf("%d messages of %s in one call\n", len(ts), ts[0].Agent)
		return nil
	})
	_, _ = s.Submit(ctx,
		core.NewTask{Agent: "ada", Kind: "mem_read", Payload: "hello"},
		core.NewTask{Agent: "ada", Kind: "mem_read", Payload: "again"},
	)
	_, _ = s.RunDue(ctx, core.Scope{})
	// Output: 2 messages of ada in one call
}

// A gate looks whether there is anything to do, and hands on what it found.
func ExampleGate() {
	ctx := context.Background()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	mails := map[string]string{"bob": "2 new mails"}
	core.Gate(s, "inbox", func(_ context.Context, t *core.RunInfo) (core.GateAnswer, error) {
		found, some := mails[t.Agent]
		input, err := json.Marshal(found)
		return core.GateAnswer{Open: some, Input: input}, err
	})
	core.Handle(s, "inbox", func(_ context.Context, t *core.Task[any]) error {
		fmt.Printf("%s: %s\n", t.Agent, t.GateInput())
		return nil
	})
	for _, agent := range []string{"ada", "bob"} {
		if _, err := s.Submit(ctx, core.NewTask{Agent: agent, ID: "inbox", Kind: "inbox", Every: time.Hour}); err != nil {
			panic(err)
		}
	}
	report, err := s.RunDueTasks(ctx, []string{"ada", "bob"})
	if err != nil {
		panic(err)
	}
	fmt.Println("ran:", report.Ran, "skipped:", report.Skipped)
	why, err := s.Explain(ctx, "ada", "inbox")
	if err != nil {
		panic(err)
	}
	text, _, _ := strings.Cut(why.Reasons[0].Text, ";")
	fmt.Println(text)
	// Output:
	// bob: "2 new mails"
	// ran: 1 skipped: 1
	// its gate said once that there is nothing to do
}
