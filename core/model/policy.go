package model

// The policies of recurring tasks for runs that overlap or were missed.

import (
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Overlap says what happens to the occurrences of a task with fixed times that fall due while it runs.
type Overlap string

// The overlap policies. They hold across all processes.
const (
	OverlapSkip          Overlap = "skip"           // they are skipped and counted, and the run is not disturbed
	OverlapQueueOne      Overlap = "queue_one"      // one of them runs when the run has ended, the others are skipped
	OverlapAllow         Overlap = "allow"          // each runs at its time, as a separate task
	OverlapCancelRunning Overlap = "cancel_running" // each runs at its time, and the one that still runs is cancelled
)

var overlaps = []Overlap{OverlapSkip, OverlapQueueOne, OverlapAllow, OverlapCancelRunning}

// Spawns reports whether each occurrence is a separate task.
func (o Overlap) Spawns() bool { return o == OverlapAllow || o == OverlapCancelRunning }

// Misfire says what happens to the occurrences of a recurring task that no process ran in time: those that are late by
// more than KindConfig.Grace.
type Misfire string

// The misfire policies.
const (
	MisfireOnce Misfire = "once" // one run for all that were missed, put off by a stable time below KindConfig.Spread
	MisfireSkip Misfire = "skip" // none: the next run is at the next time
	MisfireAll  Misfire = "all"  // one run for each, one after the other, at most KindConfig.CatchUp of them
)

var misfires = []Misfire{MisfireOnce, MisfireSkip, MisfireAll}

// OnConflict says what to do when the id of a submitted task already exists.
type OnConflict string

// The conflict rules.
const (
	OnConflictKeep OnConflict = "keep" // leave it unchanged
	// OnConflictReplace gives it the new definition and keeps its history. A running task is not disturbed: the new
	// definition applies when its run has ended. A finished task begins again. A recurring task that already has this
	// definition stays unchanged.
	OnConflictReplace OnConflict = "replace"
	OnConflictFail    OnConflict = "fail" // the call fails with a *ConflictError, and nothing is stored
)

var onConflicts = []OnConflict{OnConflictKeep, OnConflictReplace, OnConflictFail}

// Rule is the store's value for it.
func (c OnConflict) Rule() store.Conflict {
	switch c {
	case OnConflictReplace:
		return store.ConflictReplace
	case OnConflictFail:
		return store.ConflictFail
	default:
		return store.ConflictKeep
	}
}

// childSuffix is the most bytes by which the id of one occurrence's task is longer than that of the recurring task.
const childSuffix = 16
