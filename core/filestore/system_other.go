//go:build !linux && !darwin && !freebsd

package filestore

// What a system without locks and figures cannot do.

import (
	"errors"
	"math"
	"os"
)

// lock cannot keep a second process out here.
func lock(string, string) (*os.File, error) {
	return nil, errors.New("a store in a file needs a system that can lock it: use Redis, or a store in memory")
}

func unlock(f *os.File) error { return f.Close() }

// roomOf is not known here.
func roomOf(string) int64 { return math.MaxInt64 }

// isFull is not known here.
func isFull(error) bool { return false }
