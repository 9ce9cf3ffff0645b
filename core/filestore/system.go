//go:build linux || darwin || freebsd

package filestore

// What the system does for a folder: one process at a time has it, and how much room its disk has.

import (
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// lock takes the folder for this process until the file is closed, which the system does however the process ends.
func lock(dir, path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600) //nolint:gosec // the folder that the user has named
	if err != nil {
		return nil, err
	}
	// guard: file-lock
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		held, _ := os.ReadFile(path) //nolint:gosec // as above
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			process, _ := strconv.Atoi(strings.TrimSpace(string(held)))
			return nil, &InUseError{Dir: dir, Process: process}
		}
		return nil, err
	}
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

// unlock gives the folder free. A program that is being started right now has the file too, until it begins, and must not keep the folder.
func unlock(f *os.File) error {
	return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
}

// roomOf is how many bytes this user may still write to the disk of a folder; very many if that cannot be found out.
func roomOf(dir string) int64 {
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil {
		return math.MaxInt64
	}
	return int64(found.Bavail) * int64(found.Bsize) //nolint:gosec,unconvert // their types differ from system to system
}

// isFull reports whether an error says that the disk is full, or the user's share of it.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
