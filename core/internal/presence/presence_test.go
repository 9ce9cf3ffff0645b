package presence_test

// What a process knows of the others, in virtual time.

import (
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/presence"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A process that has just started leaves nothing to the others: those that do not know of it yet would leave nothing to it.
func TestANewcomerStandsBackForNone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New(memstore.Config{})
		process := func(tag string) *presence.Presence {
			b := &base.Base{Store: st, Tag: tag, Handled: func() []string { return nil }}
			b.Config.Presence, b.Config.Clock, b.Config.Logger = st, model.SystemClock{}, slog.New(slog.DiscardHandler)
			return &presence.Presence{Base: b, Slots: slots.New(model.SystemClock{}, 1, 0, 1), Running: func() []model.RunningTask { return nil }}
		}
		announce := func(p *presence.Presence) { p.Announce(t.Context(), base.LiveEvery, base.AnnounceFor) }
		old, newcomer := process("old"), process("new")
		announce(old)
		time.Sleep(base.LiveEvery - time.Second)
		announce(newcomer)
		assert.Zero(t, newcomer.Others(), "the other one does not know of it")
		time.Sleep(time.Second)
		announce(old)
		assert.Equal(t, 1, old.Others())
		time.Sleep(base.LiveEvery)
		announce(newcomer)
		assert.Equal(t, 1, newcomer.Others())

		newcomer.Retire(t.Context())
		announce(newcomer)
		assert.Zero(t, newcomer.Others(), "it is one again")
	})
}
