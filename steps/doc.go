// Package steps keeps what the steps of a long run have returned, so that a run which fails, waits or dies with its process goes on behind the last
// of them. It is a log in the checkpoint of the run, and needs no server and no worker of its own:
//
//	core.Handle(s, "story", func(ctx context.Context, t *core.Task[Story]) error {
//		run := steps.Begin(s, t.RunInfo)
//		plan, err := steps.Do(ctx, run, "plan", func(ctx context.Context) (Plan, error) { return llm.Plan(ctx, t.Payload) })
//		if err != nil {
//			return err
//		}
//		if err := run.Sleep("rest", 2*time.Hour); err != nil {
//			return err // the run ends here, and goes on from here
//		}
//		parts, err := steps.All[Part](ctx, run, "parts", plan.Tasks()...) // tasks of their own
//		...
//		answer, err := steps.Wait[Answer](run, "approval", 48*time.Hour)
//		...
//	})
//
// A step is done at least once, and once only if no process dies between its effect and its save. Steps are known by their names: their order may
// change between versions of a program, a step that is gone is passed over, and the same name twice in one run is an error. The code between steps
// runs again each time. A step that fails is a failed attempt of the task. Each occurrence of a recurring task begins a new log.
//
// An error that ends the run is returned by the step, and has to be returned by the handler: no panic and no goroutine is behind it. A log has at most
// [MaxSteps] steps and core.MaxCheckpoint bytes: what is larger is kept elsewhere, and the step returns where.
package steps
