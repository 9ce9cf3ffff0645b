//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// ownGroup lets a program start in a process group of its own, so that a Ctrl-C in the terminal does not reach it, and
// lets the end of its context ask the whole group to end.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
}

// killGroup kills what is left of a process group. Its number cannot be that of another group while there is something
// left, and if there is nothing the kernel has hardly given it to a new one yet.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // mostly there is nothing left
}
