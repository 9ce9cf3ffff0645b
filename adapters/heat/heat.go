// Package heat is a policy by how busy agents are: tasks of hot agents rise, and while many wait those of cold ones are put off.
//
// It is what MemOS calls metrics-driven priorities. An agent is hot once it has submitted and run enough within about a minute in this process; which
// figures there are says [core.Figures]. Hand a [Policy] to core.Config.Policy, or write `heat:` into duly.yaml.
package heat

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Policy says from which figures on agents are hot, and what follows. Every zero leaves something alone.
type Policy struct {
	From float64 // submits and runs of an agent from which on it is hot; counts fade by half each minute. Required.
	// Level is the level of tasks of hot agents; 1 if it is zero. A task that is more urgent by itself stays so.
	Level core.Level
	// Cooled is the level that recurring tasks which were raised go back to once their agent is not hot any more; zero leaves them as they are.
	Cooled core.Level
	// Crowd is how many tasks of a kind wait before tasks of cold agents, if they are new, run later by Delay.
	Crowd int64
	Delay time.Duration
}

// Validate returns a *[core.ConfigError] for a policy that makes no sense.
func (p *Policy) Validate() error {
	wrong := func(field string, value any, reason string, args ...any) error {
		return &core.ConfigError{Field: field, Value: value, Reason: fmt.Sprintf(reason, args...)}
	}
	switch {
	case !(p.From > 0 && p.From <= 1e6): // false for what is not a number, too
		return wrong("From", p.From, "must be above 0 and at most 1000000: from how many submits and runs on an agent is hot")
	case p.Level < 0 || p.Level > core.LevelLow:
		return wrong("Level", p.Level, "must be 1, 2 or 3, not %d", p.Level)
	case p.Cooled != 0 && (p.Cooled <= p.level() || p.Cooled > core.LevelLow):
		return wrong("Cooled", p.Cooled, "must be less urgent than level %d, and at most 3, not %d", p.level(), p.Cooled)
	case p.Crowd < 0:
		return wrong("Crowd", p.Crowd, "must not be negative, not %d", p.Crowd)
	case p.Delay < 0 || p.Delay > time.Hour:
		return wrong("Delay", p.Delay, "must be between 0s and 1h, not %s", p.Delay)
	case (p.Crowd > 0) != (p.Delay > 0):
		return wrong("Delay", p.Delay, "and crowd are required with one another: by how much tasks are put off, and from how many that wait on")
	}
	return nil
}

// level is the level of tasks of hot agents.
func (p *Policy) level() core.Level {
	if p.Level == 0 {
		return core.LevelHigh
	}
	return p.Level
}

// fading is what counts lose in the moments in which they are made.
const fading = 0.05

func (p *Policy) hot(f core.Figures) bool { return f.Agent.Submitted+f.Agent.Runs+fading >= p.From }

// Place raises a task of a hot agent, and delays a task of a cold agent while many tasks wait.
func (p *Policy) Place(f core.Figures, t core.NewTask) core.Placement {
	switch {
	case p.hot(f):
		if t.Level == 0 || t.Level > p.level() {
			return core.Placement{Level: p.level()}
		}
	case p.Crowd > 0 && f.Kind.Depth() >= p.Crowd:
		return core.Placement{Delay: p.Delay}
	}
	return core.Placement{}
}

// Again raises a recurring task while its agent is hot, and lowers it afterwards.
func (p *Policy) Again(f core.Figures, e core.Ended) core.Placement {
	switch {
	case p.hot(f) && e.Level > p.level():
		return core.Placement{Level: p.level()}
	case !p.hot(f) && p.Cooled != 0 && e.Level == p.level():
		return core.Placement{Level: p.Cooled}
	}
	return core.Placement{}
}
