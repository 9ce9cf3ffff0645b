// Package private keeps what this process was started with from other processes.
package private

import "syscall"

// Hide hides this process's environment and memory, which hold the secrets that it was started with, from other processes of
// the same user, such as the programs that handlers start: the kernel then shows them, under /proc, only to a privileged
// user, and only such a user may trace the process. Unsetting the variables would not help, as /proc shows the initial ones.
// The programs that it starts are not hidden themselves. The process writes no core dump any more.
func Hide() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
