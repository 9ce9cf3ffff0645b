package dulytest_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/dulytest"
)

func TestTheClockCallsWhatFallsDueOnTheWay(t *testing.T) {
	t.Parallel()
	clock := dulytest.New(t, core.Config{}).Clock
	begun := clock.Now()
	called := make(chan string, 4)
	clock.AfterFunc(2*time.Hour, func() { called <- "late" })
	clock.AfterFunc(time.Hour, func() { called <- "soon" })
	stop := clock.AfterFunc(time.Hour, func() { called <- "stopped" })
	clock.AfterFunc(0, func() { called <- "now" })
	assert.Equal(t, "now", <-called)
	assert.True(t, stop())
	assert.False(t, stop(), "it was stopped already")

	clock.Advance(time.Hour - 1)
	assert.Empty(t, called)
	clock.Advance(1)
	assert.Equal(t, "soon", <-called)
	assert.Empty(t, called)
	clock.Advance(24 * time.Hour)
	assert.Equal(t, "late", <-called)
	assert.Equal(t, 25*time.Hour, clock.Now().Sub(begun))
	assert.PanicsWithValue(t, "dulytest: Advance: the duration must not be negative, not -1ns", func() { clock.Advance(-1) })
}

// A wait of a scheduler ends without the test's help.
func TestAShortTimerTakesTheClockWithIt(t *testing.T) {
	t.Parallel()
	clock := dulytest.New(t, core.Config{}).Clock
	begun := clock.Now()
	called := make(chan struct{})
	clock.AfterFunc(time.Millisecond, func() { close(called) })
	<-called
	assert.Equal(t, time.Millisecond, clock.Now().Sub(begun))
}
