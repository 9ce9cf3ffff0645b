// Package exec is a ready-made handler that runs a program for each task. It is the same for every host that can start
// programs: duly daemon, duly run-due, your own.
//
// The program gets the run as JSON on its standard input, and the most important of it in variables DULY_*. How it exits
// decides the outcome of the run:
//
//	0      it succeeded, and its standard output is the task's result
//	65     it failed, and trying again would not help
//	75     it is to be run again later, uncharged
//	76     it waits for a signal: see duly-await
//	other  it failed and is tried again; the end of its output is in the error
//
// Lines that it writes to file descriptor 3 steer the run: "duly-progress: {"done": 3}", which is seen while it runs,
// "duly-snooze: 10m", "duly-yield: 5m {"page": 2}", "duly-await: approval", "duly-next-in: 1h", "duly-usage: {"tokens": 1200}". "duly-save: {"page": 2}" stores a
// checkpoint at once, and is answered on file descriptor 4. docs/reference/exec.md has the whole contract.
//
// When the run is to end, the program and what it has started get SIGTERM, and SIGKILL four seconds later. Nothing that
// stays in its process group outlives its run, nor the process that runs it, however that ends.
package exec
