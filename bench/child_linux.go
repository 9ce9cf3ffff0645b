package main

import "syscall"

// childAttributes keep the signals of the terminal from a child, which we end ourselves, and end it with us if we are
// killed.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
