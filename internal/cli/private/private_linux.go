// Package private keeps what this process was started with from other processes.
package private

import "syscall"

// Hide keeps this process's environment and memory, which hold the secrets that it was started with, from other processes of
// the same user, such as the programs that handlers start: the kernel then shows them, under /proc, to a privileged user
// only, and lets nobody else trace the process. Unsetting the variables would not do, as /proc shows those of the start. The
// programs that it starts are not hidden themselves. It writes no core dump any more.
func Hide() error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_DUMPABLE, 0, 0); errno != 0 {
		return errno
	}
	return nil
}
