package filestore

// What can be wrong with a folder.

import (
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// InUseError reports a folder that another process has open.
type InUseError struct {
	Dir     string
	Process int // its id; 0 if that is not known
}

// Error says who has it.
func (e *InUseError) Error() string {
	if e.Process == 0 {
		return e.Dir + " is in use by another process"
	}
	return fmt.Sprintf("%s is in use by process %d", e.Dir, e.Process)
}

// DamagedError reports a file that cannot be read as it was written. Nothing was changed.
type DamagedError struct {
	File   string
	Offset int64 // of the first byte that is wrong, or of the frame that has it
	What   string
}

// Error names the place, and what to do.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s is damaged at byte %d (%s): restore the folder from a backup, or move it away to begin an empty one", e.File, e.Offset, e.What)
}

// NewerError reports a file of a newer version, or of one whose calls this one answers differently. Nothing was changed.
type NewerError struct {
	File, By string // by which version it was written
	Err      error
}

// Error says what to do.
func (e *NewerError) Error() string {
	return fmt.Sprintf("%s was written by duly %s: start that version, or a newer one: %v", e.File, e.By, e.Err)
}

// Unwrap is what was found.
func (e *NewerError) Unwrap() error { return e.Err }

// FullError reports that the disk is full. It is a [store.ErrFull].
type FullError struct{ Dir string }

// Error says what to do.
func (e *FullError) Error() string {
	return "the disk of " + e.Dir + " is full: free some space; what is there runs on and ends meanwhile"
}

// Is makes it a store.ErrFull.
func (*FullError) Is(target error) bool { return target == store.ErrFull }
