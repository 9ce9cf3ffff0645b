//go:build !linux

package main

import "syscall"

// childAttributes keep the signals of the terminal from a child, which we end ourselves.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
