// Package schedule says when a task is due next. It knows no store, no clock and no handler: it computes on times that
// it is given.
//
// The schedules are `at` (once; there is nothing to compute), `every` (an interval, from the end of a run or from its
// start: [Stretch], [Slot]) and `cron` ([Cron]). [Quiet] says until when none of them may be due.
package schedule
