package search_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/ahead"
	"github.com/seed-6f6f2c11/duly/core/internal/search"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// now is when a test begins, by our clock and by the store's.
var now = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

func storeTime(d time.Duration) moment.Millis { return moment.Of(now.Add(d)) }

// at is a place behind all agents of a time.
func at(since moment.Millis) search.Place { return search.Place{Since: since} }

// found is the answer of a claim that has found nothing: it has come to a time, or everywhere, and says when others may find something.
func found(passed moment.Millis, next time.Duration) *store.Claim {
	return &store.Claim{Look: store.Look{Now: storeTime(0)}, Passed: passed, UrgentNext: storeTime(next)}
}

func clock() *ahead.Clock {
	c := &ahead.Clock{}
	c.Observe(storeTime(0), now, now)
	return c
}

func TestASearchGoesOn(t *testing.T) {
	t.Parallel()
	var s search.Search
	assert.Zero(t, s.On("x", now))
	s.Found(at(5), storeTime(0))
	assert.Equal(t, at(5), s.On("x", now.Add(time.Hour)), "until it has come to its end")
	assert.Zero(t, s.On("y", now), "another one begins")
	s.Found(search.Place{}, storeTime(0))
	assert.Equal(t, at(storeTime(0)-1), s.On("y", now.Add(search.Every-1)), "what falls due comes behind")
	assert.Zero(t, s.On("y", now.Add(search.Every)), "a short one begins again soon")
}

func TestALongSearchBeginsAgainMoreRarely(t *testing.T) {
	t.Parallel()
	var s search.Search
	s.On("x", now)
	for i := range 49 {
		s.Found(at(moment.Millis(i+1)), storeTime(0))
	}
	s.Found(search.Place{}, storeTime(0))
	assert.NotZero(t, s.On("x", now.Add(time.Second-1)))
	assert.Zero(t, s.On("x", now.Add(time.Second)), "50 claims, 20 ms each")
}

func TestWhenUrgentTasksAreAskedForAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answers []*store.Claim
		waits   bool // for a slot of its kind
		deaf    bool
		news    uint64
		want    time.Duration
	}{
		"when something falls due":              {answers: []*store.Claim{found(0, time.Second)}, want: time.Second},
		"no more often than without":            {answers: []*store.Claim{found(0, time.Millisecond)}, want: search.Every},
		"the earliest of a search":              {answers: []*store.Claim{found(5, 300*time.Millisecond), found(0, time.Second)}, want: 300 * time.Millisecond},
		"not known of a part":                   {answers: []*store.Claim{{Passed: 5}, found(0, time.Second)}, want: search.Every},
		"an older store does not say":           {answers: []*store.Claim{{}}, want: search.Every},
		"where no wake-up is heard":             {answers: []*store.Claim{found(0, time.Second)}, deaf: true, want: search.Every},
		"where one is announced":                {answers: []*store.Claim{found(0, time.Second)}, news: 1, want: search.Every},
		"where some wait for slots of its kind": {answers: []*store.Claim{found(0, time.Second)}, waits: true, want: search.Every},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var u search.Urgent
			for _, answer := range c.answers {
				u.Found(u.On("", now, 0), answer)
			}
			until := clock()
			if c.waits {
				until = nil
			}
			u.Ends(now, until)
			assert.WithinDuration(t, now.Add(c.want), u.From(!c.deaf, c.news), time.Millisecond)
			assert.Equal(t, now, u.Asked())
		})
	}
}

// However much is announced, a search comes to its end, and begins again then.
func TestASearchComesToItsEnd(t *testing.T) {
	t.Parallel()
	var u search.Urgent
	assert.Zero(t, u.On("", now, 1))
	u.Found(search.Place{}, found(5, time.Second))
	assert.Equal(t, at(5), u.On("", now, 2))
	u.Found(at(5), found(7, time.Second))
	assert.Equal(t, at(7), u.On("", now, 3))
	u.Found(at(7), found(0, time.Second))
	u.Ends(now, clock())
	assert.Equal(t, now.Add(search.Every), u.From(true, 3), "something was announced meanwhile")
	assert.Zero(t, u.On("", now, 3), "it may be of an agent that was passed over")
	u.Found(search.Place{}, found(0, time.Second))
	u.Ends(now, clock())
	assert.Greater(t, u.From(true, 3), now.Add(search.Every))
}

// Between agents of one time the search of a claim for all tasks goes on, and that for urgent ones behind them: the newest are at the end.
func TestASearchWithinOneTime(t *testing.T) {
	t.Parallel()
	var s search.Search
	s.On("x", now)
	s.Found(search.Place{Since: 5, Name: "a"}, storeTime(0))
	assert.Equal(t, search.Place{Since: 5, Name: "a"}, s.On("x", now))
	var u search.Urgent
	u.On("", now, 0)
	u.Found(search.Place{}, &store.Claim{Look: store.Look{Now: storeTime(0)}, Passed: 5, PassedName: "a"})
	assert.Equal(t, at(5), u.On("", now, 0))
}
