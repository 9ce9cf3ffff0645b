package core

// Limits over all processes: how they are set, lifted and read, and those of the configuration.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// mostRuns is the most runs at once, and starts within a time, that a limit can allow.
const mostRuns = 1_000_000

// burstTime is how long a rate saves up starts where its Burst is zero: claims do not come at the very moment of each.
const burstTime = 100 * time.Millisecond

// SetLimits sets limits for all processes of the store, whatever they were before: they count from the next claim on, and runs under way
// stay. A Burst of zero becomes the starts of a tenth of a second, one at least; a negative one becomes none. Config.Limits are set
// when a process first pulls. Fails with an *[InvalidError] for a limit that makes no sense, and where there would be more than
// [store.MostLimits].
func (s *Scheduler) SetLimits(ctx context.Context, limits ...Limit) error {
	changes := make([]store.LimitChange, len(limits))
	for i := range limits {
		l, err := whole(limits[i])
		if err == nil {
			err = ofNoAgent(l.About)
		}
		if err != nil {
			return err
		}
		changes[i] = store.LimitChange{Limit: l}
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := s.store.Limit(ctx, changes)
	return err
}

// LiftLimit lifts a limit. Fails with ErrNotFound if there is none about just that.
func (s *Scheduler) LiftLimit(ctx context.Context, about LimitTarget) error {
	if err := checkLimitTarget(about); err != nil {
		return err
	}
	effects, err := s.store.Limit(ctx, []store.LimitChange{{Limit: Limit{About: about}, Lift: true}})
	if err == nil && effects[0].Code == store.EffectNone {
		err = ErrNotFound
	}
	return err
}

// Limits are the limits in force, and how much of each is used.
func (s *Scheduler) Limits(ctx context.Context) ([]LimitUse, error) { return s.store.Limits(ctx) }

// LimitOn is the limit about just that, and how much of it is used. Fails with ErrNotFound if there is none.
func (s *Scheduler) LimitOn(ctx context.Context, about LimitTarget) (LimitUse, error) {
	all, err := s.Limits(ctx)
	if err != nil {
		return LimitUse{}, err
	}
	for i := range all {
		if all[i].About == about {
			return all[i], nil
		}
	}
	return LimitUse{}, ErrNotFound
}

// whole checks a limit, and fills in what is left out.
func whole(l Limit) (Limit, error) {
	if err := checkLimitTarget(l.About); err != nil {
		return l, err
	}
	switch {
	case l.Adaptive && (l.Rate != 0 || l.Per != 0 || l.Burst != 0):
		return l, invalid("rate", "is what an adaptive limit finds out by itself: leave it out, or adaptive")
	case l.Concurrency == 0 && l.Rate == 0 && !l.Adaptive:
		return l, invalid("concurrency", "or rate is required, or adaptive: a limit of neither bounds nothing; to lift one, lift it")
	case l.Concurrency < 0 || l.Concurrency > mostRuns:
		return l, invalid("concurrency", "must be between 1 and %d, not %d", mostRuns, l.Concurrency)
	case l.Rate < 0 || l.Rate > mostRuns:
		return l, invalid("rate", "must be between 1 and %d, not %d", mostRuns, l.Rate)
	case l.Rate == 0 && l.Per != 0:
		return l, invalid("rate", "is required with per")
	case l.Rate == 0 && l.Burst != 0:
		return l, invalid("rate", "is required with burst")
	case l.Rate > 0 && (l.Per < time.Millisecond || l.Per > longestPer || l.Per%time.Millisecond != 0):
		return l, invalid("per", "must be whole milliseconds between 1ms and %s, not %s", longestPer, l.Per)
	case l.Burst > mostRuns:
		return l, invalid("burst", "must be at most %d, not %d", mostRuns, l.Burst)
	case l.Burst < 0:
		l.Burst = 0
	case l.Rate > 0 && l.Burst == 0:
		l.Burst = max(1, int(int64(l.Rate)*int64(burstTime)/int64(l.Per)))
	}
	return l, nil
}

// ofNoAgent refuses what belongs into the profile of one agent.
func ofNoAgent(t LimitTarget) error {
	if t.Agent != "" {
		return invalid("agent_id", "is that of a profile: what bounds one agent alone is set with its profile")
	}
	return nil
}

// checkLimitTarget refuses what cannot be limited.
func checkLimitTarget(t LimitTarget) error {
	if t.Kind != "" {
		if err := validKind("kind", t.Kind); err != nil {
			return err
		}
	}
	if err := validText("limit_key", t.Key, maxKeyLen); err != nil {
		return err
	}
	switch {
	case strings.Contains(strings.TrimSuffix(t.Key, "*"), "*"):
		return invalid("limit_key", "may have a * at its end only, for any key that begins so, not %q", t.Key)
	case !store.Among(t.Each, []store.Each{"", store.EachAgent, store.EachKey}):
		return invalid("each", "must be agent or key, not %q", t.Each)
	case t.Each == store.EachKey && t.Key == "":
		return invalid("limit_key", "is required with each: key; * is any")
	}
	return nil
}

// validLimits refuses limits of the configuration that make no sense, alone or together.
func validLimits(limits []Limit) error {
	if n := len(limits); n > store.MostLimits {
		return misconfigured("Limits", n, "must be at most %d, not %d", store.MostLimits, n)
	}
	for i, l := range limits {
		if _, err := whole(l); err != nil {
			invalid, _ := errors.AsType[*InvalidError](err)
			return &ConfigError{Field: fmt.Sprintf("Limits[%d].%s", i, invalid.Field), Value: l, Reason: invalid.Reason}
		}
		// The later one would count, and nobody who reads the earlier one would know.
		if slices.ContainsFunc(limits[:i], func(other Limit) bool { return other.About == l.About }) {
			return misconfigured(fmt.Sprintf("Limits[%d]", i), l, "is about %s, which another limit above is about too: join them into one", l.About)
		}
	}
	return nil
}

// adapts says how far an adaptive limit lets a task wait.
func (e *Explanation) adapts(t *store.Stored) {
	l, learned := &t.Line.Limit, store.Learned{Runs: 1}
	if len(l.Learned) > 0 {
		learned = l.Learned[0]
	}
	text := counting(learned.Runs, "run") + " at once"
	if learned.PerMinute > 0 {
		text += fmt.Sprintf(" and %.1f starts per minute", learned.PerMinute)
	}
	next := "the next starts when a run ends"
	switch {
	case learned.HeldUntil > e.now():
		next = "it was told to come back later, and is asked again at " + clockTime(learned.HeldUntil.Time())
	case learned.Probing && l.Running > 0:
		next = "one run asks again after a refusal, and the others wait for its answer"
	case t.Line.StartAt > e.now():
		next = "the next starts at " + clockTime(t.Line.StartAt.Time())
	}
	e.because(BecauseLimited, max(t.Line.StartAt, learned.HeldUntil), "the adaptive limit on %s holds it back: it has found out that %s are served; %d running, %s in line; %s",
		l.About, text, l.Running, counting(int(l.Waiting), "task"), next)
}

// line says which limit a task waits for. One that was lifted has no bounds, and its line is gone with the next claim.
func (e *Explanation) line(t *store.Stored) {
	l := &t.Line.Limit
	var bounds []string
	if l.Concurrency > 0 {
		bounds = append(bounds, counting(l.Concurrency, "run")+" at once")
	}
	if l.Rate > 0 {
		bounds = append(bounds, counting(l.Rate, "start")+" per "+store.ShortDuration(l.Per))
	}
	if l.Adaptive {
		e.adapts(t)
		return
	}
	if len(bounds) == 0 {
		e.because(BecauseLimited, 0, "it waited for the limit on %s, which has been lifted: the next claim takes it", l.About)
		return
	}
	next := "the next starts when a run ends"
	if l.Concurrency == 0 || l.Running < int64(l.Concurrency) {
		next = "the next starts with the next claim"
	}
	if t.Line.StartAt > e.now() {
		next = "the next starts at " + clockTime(t.Line.StartAt.Time())
	}
	e.because(BecauseLimited, t.Line.StartAt, "the limit on %s holds it back: %s; %d running, %s in line; %s",
		l.About, strings.Join(bounds, " and "), l.Running, counting(int(l.Waiting), "task"), next)
}

// counting is a number of things, in words: 1 run, 2 runs.
func counting(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
