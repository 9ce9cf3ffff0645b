package storetest

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Failing is a store some of whose calls fail while it is told to: an outage that a test begins and ends.
type Failing struct {
	Spy

	err atomic.Pointer[error]
}

// NewFailing is a store whose calls of some verbs can be made to fail.
func NewFailing(st store.Store, verbs ...string) *Failing {
	f := &Failing{Spy: Spy{Store: st}}
	f.Before = func(_ context.Context, verb string) error {
		if err := f.err.Load(); err != nil && slices.Contains(verbs, verb) {
			return *err
		}
		return nil
	}
	return f
}

// FailWith makes calls fail with an error from now on; nil ends the outage.
func (f *Failing) FailWith(err error) {
	if err == nil {
		f.err.Store(nil)
		return
	}
	f.err.Store(&err)
}
