package contract

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Prefix begins the name of everything that a program or a server says about its run: lines "duly-snooze: 10m", headers
// "Duly-Snooze: 10m".
const Prefix = "duly-"

// The names after the prefix.
const (
	Snooze   = "snooze"   // run again after this time, uncharged
	Yield    = "yield"    // the same, and leave a checkpoint, which the next run gets
	Await    = "await"    // wait for the signal with this key, and leave a checkpoint
	NextIn   = "next-in"  // it succeeded, and the interval of the task is this from now on
	Progress = "progress" // how far it has come, seen while it runs
	Usage    = "usage"    // what it has used, for budgets; it adds up, and counts with any outcome
)

// longest is how far a run may be put off: ten years.
// Beyond that it is a mistake rather than a schedule.
const longest = 10 * 365 * 24 * time.Hour

// Steering gathers what a program or a server says about its run.
// It belongs to one run, and is used by one goroutine.
type Steering struct {
	task    *core.RunInfo
	said    string // the name of what set outcome
	outcome error
}

// NewSteering is the steering of a run.
func NewSteering(t *core.RunInfo) *Steering { return &Steering{task: t} }

// Outcome is what the run is to return: nil if nothing was said.
func (s *Steering) Outcome() error { return s.outcome }

// Later reports whether the run is to be repeated later.
func (s *Steering) Later() bool { return s.said == Snooze || s.said == Yield }

// Awaits reports whether the run waits for a signal.
func (s *Steering) Awaits() bool { return s.said == Await }

// Say takes one instruction, by its name after the prefix. The value of Snooze and NextIn is a duration; of Yield a duration
// and, after a space, the checkpoint as JSON; of Await as described there; of Progress JSON; and of
// Usage a JSON object of numbers.
// A mistake is an error, which fails the run without a retry: the program would say it again.
func (s *Steering) Say(name, value string) error {
	value = strings.TrimSpace(value)
	switch name {
	case Progress:
		if !IsJSON([]byte(value)) {
			return fmt.Errorf("%s%s must be JSON, not %.40q", Prefix, name, value)
		}
		return s.task.SetProgress(json.RawMessage(value))
	case Usage:
		return Use(s.task, []byte(value))
	case Snooze, Yield, NextIn:
		return s.steer(name, value)
	case Await:
		return s.await(value)
	default:
		return fmt.Errorf("%s%.40s is unknown: use %[1]s%[3]s, %[1]s%[4]s, %[1]s%[5]s, %[1]s%[6]s, %[1]s%[7]s or %[1]s%[8]s",
			Prefix, name, Snooze, Yield, Await, NextIn, Progress, Usage)
	}
}

// Use adds what a run says that it has used: a JSON object of numbers, by their units.
func Use(t *core.RunInfo, value []byte) error {
	var used core.Usage
	if err := json.Unmarshal(value, &used); err != nil || used == nil {
		return fmt.Errorf("%s%s must be a JSON object of numbers such as {\"tokens\": 1200}, not %.40q", Prefix, Usage, value)
	}
	return t.Use(used)
}

// steer sets the outcome of the run. Saying the same thing again replaces what was said.
// Different things exclude each other, as only one of them could count.
func (s *Steering) steer(name, value string) error {
	text, rest, _ := strings.Cut(value, " ")
	rest = strings.TrimSpace(rest)
	d, err := time.ParseDuration(text)
	switch {
	case err != nil || d < 0 || d > longest || rest != "" && name != Yield:
		return fmt.Errorf("%s%s must be a duration such as 10m, not %.40q", Prefix, name, value)
	case s.said != "" && s.said != name:
		return fmt.Errorf("%[1]s%[2]s and %[1]s%[3]s exclude each other: say one of them", Prefix, s.said, name)
	}
	s.said = name
	switch name {
	case Snooze:
		s.outcome = core.Snooze(d)
	case NextIn:
		s.outcome = core.NextIn(d)
	default:
		return s.yield(rest, d)
	}
	return nil
}

// yield keeps the checkpoint, which is bounded like a result.
func (s *Steering) yield(checkpoint string, d time.Duration) error {
	if err := s.bounded(Yield, checkpoint); err != nil {
		return err
	}
	s.outcome = core.Yield(json.RawMessage(checkpoint), d)
	return nil
}

// bounded refuses a checkpoint that cannot be kept.
func (s *Steering) bounded(name, checkpoint string) error {
	switch most := s.task.MaxResult(); {
	case len(checkpoint) > most:
		return fmt.Errorf("the checkpoint of %s%s is larger than the limit of %d bytes", Prefix, name, most)
	case !IsJSON([]byte(checkpoint)):
		return fmt.Errorf("%s%s needs a checkpoint that is JSON, not %.40q", Prefix, name, checkpoint)
	default:
		return nil
	}
}
