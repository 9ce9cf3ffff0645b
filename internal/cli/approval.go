package cli

// The commands approval and approvals, and what answers their addresses.

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/due"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// approvalsIn are those of the file, which has to have some.
func approvalsIn(ctx context.Context, o *command.Options) (*httpadapter.Approvals, error) {
	c, err := command.LoadFile(ctx, o)
	if err != nil {
		return nil, err
	}
	a, err := due.Approvals(c)
	if err == nil && a == nil {
		err = exit.Misuse("with -c, name a file that has approvals: { url: https://duly.example, secret_env: NAME }", "there is nowhere to answer")
	}
	return a, err
}

// approvalCommand prints an address for a person: of what a task waits for, or is going to wait for. The latter asks no store.
func approvalCommand(o *command.Options) *cobra.Command {
	q := httpadapter.Approval{For: 48 * time.Hour}
	cmd := command.New("approval AGENT ID", "Make an address at which a person answers a task that waits for a signal",
		"  duly approval ada refund-17 -c duly.yaml --question 'Refund 40 EUR to Bob?'\n  duly approval ada refund-17 -c duly.yaml --key approval --fence 1234",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 || (q.Key == "") != (q.Fence == 0) {
				return exit.Misuse("name them as AGENT ID; --key and --fence, together, are for a run that has yet to wait", "expected an agent and the id of a task")
			}
			approvals, err := approvalsIn(cmd.Context(), o)
			if err != nil {
				return err
			}
			if q.Agent, q.ID = args[0], args[1]; q.Fence == 0 {
				if err := o.OnStore(cmd.Context(), func(s command.Scheduler) error { return asked(cmd.Context(), s, &q.Question) }); err != nil {
					return err
				}
			}
			address, err := approvals.URL(q, core.SystemClock{}.Now())
			if err != nil {
				return exit.Misuse("see "+cmd.CommandPath()+" --help", "%w", err)
			}
			return o.Print(map[string]string{"url": address}, func(w *table.Page) { w.Line("%s", address) })
		})
	cmd.Args = cobra.ArbitraryArgs
	flags := cmd.Flags()
	flags.StringVar(&q.Text, "question", "", "what the page asks (default what the task asks, or which agent and signal it is about)")
	flags.StringVar(&q.Key, "key", "", "the key of the signal (default what the task waits for)")
	flags.Int64Var((*int64)(&q.Fence), "fence", 0, "the fence of the run that is going to wait for it (default that of the wait)")
	command.DurationVar(flags, &q.For, "for", q.For, "how long it may be answered")
	return command.OnlyHere(o.WithJSON(cmd), "the secret that makes the address is in the file", "leave it out, and name the file with -c")
}

// asked adds to a question what its task waits for.
func asked(ctx context.Context, s command.Scheduler, q *core.Question) error {
	t, err := s.Task(ctx, q.Agent, q.ID)
	switch {
	case err != nil:
		return err
	case t.Awaiting == nil:
		return &core.InvalidError{Field: "id", Reason: "names a task that waits for no signal: duly explain says what it does"}
	}
	q.Key, q.Fence, q.Text = t.Awaiting.Key, t.Awaiting.Fence, cmp.Or(q.Text, t.Awaiting.Question)
	return nil
}

// question is a task that waits for a person.
type question struct {
	Agent    string `json:"agent_id"`
	ID       string `json:"id"`
	Kind     string `json:"kind"`
	Question string `json:"question,omitempty"`
	Key      string `json:"key"`            // of the signal
	From     string `json:"from,omitempty"` // approval if nothing else counts
	Since    string `json:"since"`
	Until    string `json:"until,omitempty"` // left out for ever
}

// approvalsCommand lists what waits for a person.
func approvalsCommand(o *command.Options) *cobra.Command {
	l := core.List{Asking: true, Limit: inspect.MaxPage}
	var most int
	cmd := command.New("approvals", "List the tasks that wait for a person: for an approval, or for the answer to a question",
		"  duly approvals\n  duly approvals --agent ada --json\n  duly signal ada approval --payload '{\"decision\":\"approve\"}'     # answers, with a credential that may",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				found, next, err := questions(cmd.Context(), s, l, most)
				if err != nil {
					return err
				}
				answer := struct {
					Approvals []question `json:"approvals"`
					Next      string     `json:"next_cursor,omitempty"`
				}{found, next}
				return o.Print(answer, func(w *table.Page) { printQuestions(w, found, next) })
			})
		})
	flags := cmd.Flags()
	flags.StringVar(&l.Agent, "agent", "", "only those of this agent")
	flags.StringVar(&l.Kind, "kind", "", "only those of this kind")
	flags.StringVar(&l.Cursor, "cursor", "", "continue after the previous page (its cursor)")
	flags.IntVar(&most, "limit", 100, "stop at the page on which there are so many")
	return o.WithWatch(o.WithJSON(cmd))
}

// questions are the tasks of a list that wait for a person, page by page, until there are enough.
func questions(ctx context.Context, s command.Scheduler, l core.List, most int) ([]question, string, error) {
	found := []question{}
	for {
		tasks, next, err := s.Tasks(ctx, l)
		if err != nil {
			return nil, "", err
		}
		for i := range tasks {
			if q, ok := questionOf(&tasks[i]); ok {
				found = append(found, q)
			}
		}
		if l.Cursor = next; next == "" || len(found) >= most {
			return found, next, nil
		}
	}
}

// questionOf is what a task asks; false if it waits for no person.
func questionOf(t *core.TaskInfo) (question, bool) {
	w := t.Awaiting
	if w == nil || w.From != core.FromApproval && w.Question == "" {
		return question{}, false
	}
	q := question{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Question: w.Question, Key: w.Key, From: w.From, Since: table.Clock(t.UpdatedAt)}
	if !w.Until.IsZero() {
		q.Until = table.Clock(w.Until)
	}
	return q, true
}

// printQuestions writes a page of what waits for a person.
func printQuestions(w *table.Page, found []question, next string) {
	if len(found) == 0 {
		w.Line("no task waits for a person")
		return
	}
	t := table.New(w, "AGENT", "ID", "QUESTION", "KEY", "SINCE", "UNTIL")
	for _, q := range found {
		t.Row(q.Agent, q.ID, cmp.Or(table.First(q.Question), "-"), q.Key, q.Since, cmp.Or(q.Until, "-"))
	}
	t.End()
	printNext(w, next)
}
