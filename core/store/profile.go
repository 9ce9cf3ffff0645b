package store

import (
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Profiles of agents, and the waiting tasks that a change of one gives other due times.

// ProfileChange sets the profile of an agent, opaque to the store, or deletes it. It is not about the tasks of the agent: it may have
// none.
type ProfileChange struct {
	Agent string
	Was   []byte // as it was read; empty for none: one that is another by now stays
	Now   []byte // empty to delete it
	// Limits and Budgets are further bounds of its tasks, About the Agent and none Each; the profile defines them, so that
	// others are only ever set with another profile.
	Limits  []bound.Limit
	Budgets []bound.Budget
	// Quota bounds what is stored for the agent from now on; nil for nothing. What exists stays.
	Quota *Quota
	// Tenant is whose agent it is; empty for none. While more is due than claims may take, each tenant gets an equal share of them.
	Tenant string
	// Recurring are tasks of the agent that recur, as they were read: if the profile is Now already, those that are still the same are counted
	// by its quota. A caller that sets a quota sends all pages of them once it is set, as a store cannot see which of its tasks recur.
	Recurring []Stored
}

// Profiled is an agent with its profile.
type Profiled struct {
	Agent   string
	Profile []byte
	Use     *QuotaUse // nil if it has no quota
}

// ProfilePage is a page of profiles.
type ProfilePage struct {
	Profiles []Profiled
	Next     string // where the next page begins; empty on the last one
}

// Replan gives a waiting task another due time, and the state that says why.
type Replan struct {
	Agent, ID string
	Version   string // as it was read, and when it was due then
	Was       moment.Millis
	Due       moment.Millis
	State     []byte // empty for none; its crashes stay counted
}

// Remains are what an agent leaves behind whose tasks were deleted: its groups without live tasks, and the ids of tasks whose
// records were dropped before their time.
type Remains struct {
	Agent  string
	Groups []string // by name; one that has live tasks stays
	Cursor string   // where the page of ids begins; empty for the first
}
