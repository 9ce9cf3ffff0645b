package core_test

// Alarms that a clock has not confirmed: they are owed, and whoever comes next pays.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/storetest/spy"
)

// hangingClock is a clock whose packets are dropped.
type hangingClock struct{ asked int }

func (h *hangingClock) Set(ctx context.Context, _ time.Time) error {
	h.asked++
	<-ctx.Done()
	return ctx.Err()
}

// later submits a task that is due after a while.
func later(c *cloud, s *core.Scheduler, id string, after time.Duration) core.Submitted {
	c.Helper()
	placed, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: id, Kind: "k", Delay: after})
	require.NoError(c, err)
	return placed[0]
}

// A submit waits a second for a clock that hangs, and says so, each time; what is not confirmed is not known, and the next one pays.
func TestAClockThatHangs(t *testing.T) {
	inCloud(t, func(c *cloud) {
		clock := &hangingClock{}
		s := c.process(c.store, clock)
		for i := range 3 {
			ctx, cancel := context.WithTimeout(c.Context(), 5*time.Second)
			begun := time.Now()
			placed, err := s.Submit(ctx, core.NewTask{Agent: "a", ID: string(rune('a' + i)), Kind: "k", Delay: time.Hour})
			cancel()
			require.NoError(c, err)
			assert.LessOrEqual(c, time.Since(begun), time.Second)
			assert.True(c, placed[0].NotBooked)
			assert.Equal(c, i+1, clock.asked, "none is believed booked")
		}
		r, err := s.RunDue(c.Context(), core.Scope{})
		var failed *core.AlarmError
		require.ErrorAs(c, err, &failed)
		assert.Zero(c, r.AlarmAt)
		booked, err := c.store.Book(c.Context(), alarm.Booking{})
		require.NoError(c, err)
		assert.Zero(c, booked.Next)
		assert.Equal(c, time.Hour, booked.Owed.Time().Sub(c.begun))

		time.Sleep(3 * time.Second) // its process has had its time
		assert.False(c, later(c, c.process(c.store, c), "x", 2*time.Hour).NotBooked)
		assert.Equal(c, []time.Duration{time.Hour}, c.at(c.rings), "a later submit pays what is owed")
	})
}

// The caller's context may be over: the alarm is booked and confirmed all the same.
func TestAnAlarmHasItsOwnTime(t *testing.T) {
	inCloud(t, func(c *cloud) {
		ctx, cancel := context.WithCancel(c.Context())
		st := &spy.Store{Store: c.store, After: func(_ context.Context, verb string, _ any) error {
			if verb == "Submit" {
				cancel()
			}
			return nil
		}}
		placed, err := c.process(st, c).Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		require.NoError(c, err)
		assert.False(c, placed[0].NotBooked)
		booked, err := c.store.Book(c.Context(), alarm.Booking{})
		require.NoError(c, err)
		assert.Equal(c, time.Hour, booked.Next.Time().Sub(c.begun))
	})
}

// slowClock takes a moment to answer.
type slowClock struct{ core.Alarm }

func (s slowClock) Set(ctx context.Context, at time.Time) error {
	time.Sleep(100 * time.Millisecond)
	return s.Alarm.Set(ctx, at)
}

// What several callers have waited for together serves none that comes later: an alarm that may ring at any moment, as its clock is ahead of the
// store's, books nothing for what follows it.
func TestAnAlarmForOthersServesNothingLater(t *testing.T) {
	inCloud(t, func(c *cloud) {
		s := c.process(c.store, slowClock{c})
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				_, err := s.Submit(c.Context(), core.NewTask{Agent: "a", ID: fmt.Sprint("t", i), Kind: "k", Every: time.Minute, From: core.FromStart})
				assert.NoError(c, err)
			})
		}
		all.Wait()
		time.Sleep(500*time.Millisecond - time.Since(c.begun)) // it rings before its time
		_, err := s.RunDue(c.Context(), core.Scope{})
		require.NoError(c, err)
		require.Len(c, c.starts, 3)
		assert.Greater(c, slices.Max(c.at(c.rings)), 2*time.Second, "later than the guard of that pull")
	})
}

// Sixty submits that are due ever earlier make one call that gathers them, not sixty.
func TestSubmitsThatAreDueEverEarlier(t *testing.T) {
	inCloud(t, func(c *cloud) {
		for i := range 60 {
			later(c, c.process(c.store, c), fmt.Sprint("t", i), time.Duration(60-i)*time.Minute)
		}
		assert.Equal(c, []time.Duration{alarm.GatherFor, time.Hour}, c.at(c.rings))
		s := c.process(c.store, c)
		c.live(time.Hour, func() {
			_, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
		})
		assert.Len(c, c.starts, 60)
	})
}

// A process that dies after its first claim is followed by the guard that it has booked before.
func TestAPullBooksAGuardBeforeItStartsWork(t *testing.T) {
	inCloud(t, func(c *cloud) {
		died := errors.New("dead")
		dead := false
		st := &spy.Store{Store: c.store, Before: func(_ context.Context, verb string) error {
			if dead {
				return died
			}
			return nil
		}, After: func(_ context.Context, verb string, _ any) error {
			if dead = dead || verb == "Claim"; dead {
				return died
			}
			return nil
		}}
		plain := c.process(c.store, nil)
		later(c, plain, "now", 0)
		later(c, plain, "soon", 4*time.Second)
		_, err := c.process(st, c).RunDue(c.Context(), core.Scope{})
		require.Error(c, err)
		assert.Equal(c, []time.Duration{time.Second}, c.at(c.rings))
		s := c.process(c.store, c)
		c.live(90*time.Second, func() {
			_, err := s.RunDue(c.Context(), core.Scope{})
			require.NoError(c, err)
		})
		require.Len(c, c.starts, 2)
		for key, at := range c.starts {
			most := 4 * time.Second
			if strings.HasPrefix(key, "now") {
				most = time.Minute + time.Second // its lease
			}
			assert.LessOrEqual(c, at.Sub(c.begun), most, key)
		}
	})
}

// A process without a clock says so where hosts are called by alarms, and one that lives books for it.
func TestAProcessWithoutAClock(t *testing.T) {
	inCloud(t, func(c *cloud) {
		var log strings.Builder
		plain, err := core.New(c.store, core.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		require.NoError(c, err)
		assert.False(c, later(c, plain, "before", time.Hour).NotBooked, "nobody is called by alarms")
		s := c.process(c.store, c)
		later(c, s, "hour", time.Hour)
		time.Sleep(time.Minute) // for so long it remembers that
		assert.True(c, later(c, plain, "minute", time.Minute).NotBooked)
		assert.Contains(c, log.String(), "this process has no clock outside")
		assert.False(c, later(c, plain, "later", 2*time.Hour).NotBooked, "there is an earlier alarm")
		e, err := plain.Explain(c.Context(), "a", "minute")
		require.NoError(c, err)
		assert.Equal(c, model.BecauseAlarm, e.Reasons[len(e.Reasons)-1].Code)

		_, err = s.BookAlarm(c.Context())
		require.NoError(c, err)
		assert.Equal(c, []time.Duration{2 * time.Minute, time.Hour}, c.at(c.rings))
		e, err = plain.Explain(c.Context(), "a", "minute")
		require.NoError(c, err)
		assert.Len(c, e.Reasons, 1)
		_, err = s.BookAlarm(c.Context())
		require.NoError(c, err)
		assert.Len(c, c.rings, 2, "it is booked")
	})
}
