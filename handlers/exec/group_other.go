//go:build !unix

package exec

import "os/exec"

// group is one program: where there are no process groups it alone is ended.
type group struct{ cmd *exec.Cmd }

func newGroup() *group { return &group{} }

// take leaves out file descriptor 3, which Windows does not know.
func (*group) take(cmd *exec.Cmd) { cmd.ExtraFiles = nil }

func (g *group) begun(cmd *exec.Cmd) { g.cmd = cmd }

func (g *group) kill() {
	if g.cmd != nil {
		_ = g.cmd.Process.Kill() // mostly it has ended
	}
}

func (g *group) end() { g.kill() }
