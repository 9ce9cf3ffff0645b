package operate

// Limits over all processes: how they are set and lifted.

import (
	"cmp"
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// SetLimits sets limits for all processes of the store, replacing previous ones: they apply from the next claim on, and runs under way
// continue. A Burst of zero becomes the starts of a tenth of a second, one at least; a negative one becomes none. Config.Limits are set
// when a process first pulls. Fails with an *[store.InvalidError] for an invalid limit, and if there would be more than
// [bound.MostLimits].
func (s *BoundDesk) SetLimits(ctx context.Context, limits ...bound.Limit) error {
	changes := make([]bound.LimitChange, len(limits))
	for i := range limits {
		l, err := bounding.Whole(limits[i])
		if err == nil {
			err = bounding.OfNoAgent(l.About)
		}
		if err != nil {
			return err
		}
		changes[i] = bound.LimitChange{Limit: l}
	}
	if len(changes) == 0 {
		return nil
	}
	_, err := s.base.Store.Limit(ctx, changes)
	return err
}

// LiftLimit lifts a limit. Fails with ErrNotFound if there is none with exactly this target.
func (s *BoundDesk) LiftLimit(ctx context.Context, about bound.LimitTarget) error {
	if err := cmp.Or(bounding.CheckLimitTarget(about), bounding.OfNoAgent(about)); err != nil {
		return err
	}
	return lifted(s.base.Store.Limit(ctx, []bound.LimitChange{{Limit: bound.Limit{About: about}, Lift: true}}))
}

// lifted is ErrNotFound if nothing was lifted.
func lifted(effects []store.Effect, err error) error {
	if err == nil && effects[0].Code == store.EffectNone {
		err = model.ErrNotFound
	}
	return err
}

// Limits are the limits in force, and how much of each is used.
func (s *BoundDesk) Limits(ctx context.Context) ([]bound.LimitUse, error) {
	return s.base.Store.Limits(ctx)
}

// LimitOn is the limit with exactly this target, and how much of it is used. Fails with ErrNotFound if there is none.
func (s *BoundDesk) LimitOn(ctx context.Context, about bound.LimitTarget) (bound.LimitUse, error) {
	all, err := s.Limits(ctx)
	return one(all, err, func(l *bound.LimitUse) bool { return l.About == about })
}

// one is the element that is meant. Fails with ErrNotFound if there is none.
func one[V any](all []V, err error, meant func(v *V) bool) (V, error) {
	for i := range all {
		if meant(&all[i]) {
			return all[i], err
		}
	}
	return *new(V), cmp.Or(err, model.ErrNotFound)
}
