// Package base is what the rooms of a scheduler share: the store and its clock, the settings that all of them go by, the question whether
// something is allowed, and the events that are told. Above it stand operate (what operators order), inspect (what is looked at) and core
// (what runs tasks).
package base

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Config are the settings that all rooms go by; core.Config says what each means.
type Config struct {
	Name, Zone string
	MaxPayload int
	Kinds      map[string]model.KindConfig
	OnEvent    func(model.Event)
	Allow      func(ctx context.Context, t model.Transition) error
	Authorizer model.Authorizer
	Logger     *slog.Logger
	Clock      model.Clock
	Presence   store.Presence
	Feed       store.Feed
	Recent     store.Recent
	Servers    store.Servers
	Callbacks  interface{ Check(url string) error } // nil if none are allowed
}

// Base is one for the rooms of a scheduler. It is safe for concurrent use; its fields are not changed once it is used.
type Base struct {
	Store   store.Store
	Config  Config
	Crons   plan.Crons
	Habits  plan.KeptHabits
	Unnamed model.KindConfig             // the settings of kinds that have none of their own
	OfKind  map[string]*model.KindConfig // those of the others

	// What runs tasks here says this of itself.
	Tag     string
	Handled func() []string // the kinds that have a handler, not to be changed
	Self    func() model.Process

	Offset  atomic.Int64 // the store's clock minus ours, ms, as of the last answer
	known   atomic.Bool  // there was an answer
	telling Telling
}
