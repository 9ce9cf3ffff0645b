// Package dulytest is for the tests of handlers, and of programs that submit tasks. It needs no Redis, no sleep and no framework.
//
// # Call a handler
//
// A handler is a function of a context and a task. [NewTask] makes the task; afterwards [Result] and [Progress] decode what the
// handler has set, and what it returned is compared as any error:
//
//	task := dulytest.NewTask(Digest{Topic: "engines"})
//	task.Attempt = 3
//	err := WriteDigest(ctx, task)
//	text, err := dulytest.Result[string](task)
//
// [Resume] makes the task of a run that an earlier one yielded to, with its checkpoint.
//
// # Run what is due
//
// Retries, schedules and uniqueness belong to the scheduler. [New] makes one whose tasks are in memory and whose clock does not move
// until the test turns it. Nothing runs by itself either: [Scheduler.RunDue] runs what is due by that clock, and returns once
// all of it has ended.
//
//	s := dulytest.New(t, core.Config{})
//	core.Handle(s.Scheduler, "digest", WriteDigest)
//	s.Submit(ctx, core.NewTask{Agent: "ada", Kind: "digest", Delay: time.Hour})
//	s.RunDue(t)                // nothing is due
//	s.Clock.Advance(time.Hour)
//	s.RunDue(t)                // it ran
//
// # Lose the store
//
// [Store.Fail] makes calls of the store fail, so that a test sees what the program does while Redis is unavailable.
package dulytest
