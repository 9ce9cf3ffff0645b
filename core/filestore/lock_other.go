//go:build !unix

package filestore

import (
	"errors"
	"os"
)

// lock cannot keep a second process out here.
func lock(string, string) (*os.File, error) {
	return nil, errors.New("a store in a file needs a system that can lock it: use Redis, or a store in memory")
}

func unlock(f *os.File) error { return f.Close() }

// isFull is not known here.
func isFull(error) bool { return false }
