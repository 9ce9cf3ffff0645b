//go:build !unix

package exec

// Ending a program where there are no process groups.

import "os/exec"

// group is one program: where there are no process groups it alone is ended.
type group struct{ cmd *exec.Cmd }

// newGroup makes a group without a guard.
func newGroup() *group { return &group{} }

// take leaves out file descriptor 3, which Windows does not know.
func (*group) take(cmd *exec.Cmd) { cmd.ExtraFiles = nil }

// begun is called when the program has started.
func (g *group) begun(cmd *exec.Cmd) { g.cmd = cmd }

// kill ends the program at once.
func (g *group) kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill() // mostly it has ended
	}
}

// end ends what is left of it.
func (g *group) end() { g.kill() }
