// Package search remembers how far claims that pass over tasks have come in a partition, and says when it is worth asking it again.
package search

import (
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

const (
	// Every is how often a partition is asked again whose answers do not say when that is worth it.
	Every = 50 * time.Millisecond

	// pace is how long after its begin a search begins again at those who have waited longest, for each claim that it takes: so the short ones begin
	// again each time, and the long ones cost little.
	pace = 20 * time.Millisecond
)

// Place is a place among the agents that wait: since when, and a name of the store's between those of the same time. The zero Place is before all.
type Place struct {
	Since moment.Millis
	Name  string
}

// Search is how far claims that pass over tasks have come. Tasks that fall due, or come to an agent that has nothing else, are behind
// everything that was searched before; a task of an agent that was passed over is found when the search begins again.
type Search struct {
	of     string // what they pass over
	after  Place
	begun  time.Time
	claims int // since then, until everything was looked at
	whole  bool
}

// On is where a search for something continues; zero, the beginning, if it is another one, or an old one.
func (s *Search) On(of string, now time.Time) Place {
	if s.of != of || now.Sub(s.begun) >= max(Every, time.Duration(s.claims)*pace) && s.whole {
		*s = Search{of: of, begun: now}
	}
	return s.after
}

// Found notes that a claim has searched up to a place, or everything, and found nothing.
func (s *Search) Found(passed Place, now moment.Millis) {
	if !s.whole {
		s.claims++
	}
	s.after = passed
	if passed.Since == 0 {
		s.after, s.whole = Place{Since: now - 1}, true // more may fall due within this millisecond
	}
}

// Urgent is a search for tasks of level 1, by claims that have slots for these alone. The zero value has asked for none.
type Urgent struct {
	Search

	asked time.Time     // when the claim was sent that has ended it
	next  time.Time     // when the next one is worth it, unless tasks are announced; zero if that is not known
	soon  moment.Millis // that by the store's clock, as far as the search has come
	heard uint64        // how many had been announced when it began
}

// Asked is when the last search has ended that found none; zero for never.
func (u *Urgent) Asked() time.Time { return u.asked }

// From is when the next claim is worth it, of a host that has heard of so many urgent tasks, and hears of them. It is never sooner than Every after a
// search has ended: what is announced may be for others, and as much as a caller likes.
func (u *Urgent) From(hears bool, news uint64) time.Time {
	// guard: urgent-paced
	again := u.asked.Add(Every)
	// guard: urgent-heard
	if !hears || news != u.heard || u.next.Before(again) {
		return again
	}
	return u.next
}

// On is where it continues. What was announced since it began may be of agents that it has passed over: it begins again, but not before it has come to
// its end, which it would never do while more and more is announced.
func (u *Urgent) On(of string, now time.Time, news uint64) Place {
	// guard: urgent-search-ends
	if u.whole && news != u.heard {
		u.Search = Search{}
	}
	after := u.Search.On(of, now)
	if after == (Place{}) {
		u.heard, u.next = news, time.Time{}
	}
	return after
}

// Found notes that a claim after a time has found none, how far it has searched, and when it says that others may: see [store.Claim].
func (u *Urgent) Found(after Place, c *store.Claim) {
	if after == (Place{}) || u.soon > c.UrgentNext {
		u.soon = c.UrgentNext
	}
	// It goes on behind all agents of one time: new tasks of level 1 are at the end, and what is at one time with many others has its turn by age.
	u.Search.Found(Place{Since: c.Passed}, c.Now)
}

// Ends notes when the claim was sent that has ended it. The next one is worth it when the store's clock comes to what the answers have said; nil if
// that is not known, as something waits for what only this process knows of.
func (u *Urgent) Ends(sent time.Time, clock *ahead.Clock) {
	u.asked, u.next = sent, time.Time{}
	if clock != nil && u.soon != 0 {
		u.next = clock.Reaches(u.soon)
	}
}
