package store

import (
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Find: the tasks of all agents that are where operators look first.

// Place is where tasks are that can be found without their agents.
type Place byte

// The places, and the order in which Find goes through them.
const (
	// PlaceFailed are dead letters, the last ones first.
	PlaceFailed Place = 'f'
	// PlaceRunning are tasks that run, by the end of their leases: each has its Lease and Holder.
	PlaceRunning Place = 'r'
	// PlaceOverdue are tasks that are due and could be claimed, agent by agent: first the one that has waited longest since its
	// turn, or since its only task was due. Tasks that are held, in line for a limit, or without a handler are not among them.
	PlaceOverdue Place = 'w'
	// PlaceAwaiting are tasks that wait for a signal which has not come, in no order.
	PlaceAwaiting Place = 'a'
)

// Find asks for a page of the tasks of all agents.
type Find struct {
	Place Place
	Since moment.Millis // PlaceFailed: only those that ended then or later; zero: as far back as records are kept
	Until moment.Millis // PlaceFailed: only those that ended before; zero for any
	After string        // where the page begins: Page.Next of the one before, or Stored.Cursor of the task before
	Limit int           // most tasks of the page
}
