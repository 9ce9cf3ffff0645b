// Package server is what the servers of a store report about themselves, for their operators. It is optional for a store, and only reports depend on it.
package server

import (
	"context"
	"strings"
	"time"
)

// Reporter is implemented by stores that can report how their servers are set up.
type Reporter interface {
	// Facts asks every server that has tasks, or may have once a master is lost. One that does not answer is left out; it fails if none does.
	Facts(ctx context.Context) ([]Facts, error)
}

// Facts are what one server reports about itself. Unreported fields are empty or zero.
type Facts struct {
	Node       string // its address; the URL's name where there is one server
	Version    string
	Eviction   string // maxmemory-policy
	AppendOnly string // "yes" or "no"
	Save       string // when snapshots are saved: empty for never, if SaveKnown
	SaveKnown  bool
	Replicas   int   // that follow it
	Memory     int64 // bytes in use
	MaxMemory  int64 // bytes that it may use; zero for no bound
	// Commands are those that it has executed since it was started, also those within scripts, and Up is for how long it has run.
	Commands int64
	Up       time.Duration
}

// Loss is how much a server loses when it runs out of memory, or is started again.
type Loss int

// The losses, the gravest last.
const (
	LosesNothing Loss = iota // or a second of writes
	LosesUnknown             // it does not report it
	LosesSome                // records of finished tasks; writes since the last snapshot
	LosesTasks
)

// Evicts returns what the server drops when memory is short. Of duly's keys only the records of finished tasks have a time to live.
func (f *Facts) Evicts() Loss {
	switch {
	case f.Eviction == "noeviction":
		return LosesNothing
	case f.Eviction == "":
		return LosesUnknown
	case strings.HasPrefix(f.Eviction, "volatile-"):
		return LosesSome
	default:
		return LosesTasks
	}
}

// Forgets returns what a crash of the server loses.
func (f *Facts) Forgets() Loss {
	switch {
	case f.AppendOnly == "yes":
		return LosesNothing
	case f.AppendOnly == "no" && f.SaveKnown && f.Save == "" && f.Replicas == 0:
		return LosesTasks
	case f.AppendOnly == "no" && f.Save != "":
		return LosesSome
	default:
		return LosesUnknown
	}
}
