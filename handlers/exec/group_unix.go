//go:build unix

package exec

// Process groups: how a program and all that it starts end with the run, even if this process
// dies.

import (
	"os"
	"os/exec"
	"syscall"
)

// group is the process group of one program. A guard leads it: a shell that waits for the end of a pipe which this process
// holds open. When this process dies, by kill -9 as well, the pipe ends and the guard kills the group. The guard starts
// before the program, so that there is no moment without it, and is waited for after the group was killed, so that the
// group's number cannot have been reused by another group.
//
// Without a shell the program leads the group, and this process ends it only if it does not die suddenly.
// id is the guard's process id, or the program's if there is no guard; zero before either has started.
type group struct {
	id    int
	guard *exec.Cmd
	alive *os.File // the guard waits for its end
}

// guardScript ignores what asks the group to end: that is for the program.
const guardScript = `trap "" HUP INT TERM; read -r _; kill -s KILL 0`

// newGroup starts the guard. If that fails the program runs without one, as a
// missing shell is no reason not to work.
func newGroup() *group {
	r, w, err := os.Pipe()
	if err != nil {
		return &group{}
	}
	defer func() { _ = r.Close() }()
	guard := exec.Command("/bin/sh", "-c", guardScript) //nolint:noctx // it outlives the context of the run, until the group has ended
	guard.Stdin, guard.Env = r, []string{}
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	// guard: process-group
	if guard.Start() != nil {
		_ = w.Close()
		return &group{}
	}
	return &group{id: guard.Process.Pid, guard: guard, alive: w}
}

// take lets a program start in the group, so that a Ctrl-C in the terminal does not reach it, and lets the end of its context
// ask the whole group to end.
func (g *group) take(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: g.id}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.SysProcAttr.Pgid, syscall.SIGTERM) }
	if g.id == 0 {
		cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	}
}

// begun is called when the program has started.
// Without a guard the program leads its group.
func (g *group) begun(cmd *exec.Cmd) {
	if g.id == 0 {
		g.id = cmd.Process.Pid
	}
}

// kill kills what is left of the group.
func (g *group) kill() {
	if g.id != 0 {
		_ = syscall.Kill(-g.id, syscall.SIGKILL) // without a guard mostly nothing is left
	}
}

// end kills what is left of the group, and its guard.
func (g *group) end() {
	g.kill()
	if g.guard != nil {
		_ = g.guard.Wait() // it was killed
		_ = g.alive.Close()
	}
}
