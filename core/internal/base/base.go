// Package base has what the packages of a scheduler share: the store and its clock, the settings that all of them use, authorization,
// and the reporting of events. On it build operate (commands of operators), inspect (queries) and core
// (running tasks).
package base

import (
	"context"
	"log/slog"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/internal/plan"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/core/store/server"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// Config are the settings that all packages use; core.Config says what each means.
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
	Feed       feed.Feed
	Recent     window.Recent
	Servers    server.Reporter
	Outputs    output.Keeper                        // nil if the store keeps none
	Callbacks  interface{ Check(url string) error } // nil if none are allowed
}

// Base is shared by the packages of a scheduler. It is safe for concurrent use; its fields are not changed once it is used.
type Base struct {
	Store    store.Store
	Config   Config
	Crons    plan.Crons
	Profiles plan.ProfileCache
	Unnamed  model.KindConfig             // the settings of kinds that have none of their own
	OfKind   map[string]*model.KindConfig // the settings of the other kinds

	// Set by the part of this process that runs tasks.
	Tag     string
	Handled func() []string // the kinds that have a handler, not to be changed
	Self    func() model.Process

	Asked    atomic.Int64 // when this process last asked for work, ms by its clock; moment.Never if it does so by itself, 0 if it has not yet
	Watching atomic.Bool  // it has met a task that is to succeed within a time

	Offset atomic.Int64 // the store's clock minus ours, ms, as of the last answer
	known  atomic.Bool  // the store has answered
	queue  EventQueue
}
