package inspect

// The difference between what a process declares and what a store has.

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/seed-6f6f2c11/duly/core/internal/bounding"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// Undeclared returns which of the given limits, budgets and profiles the store lacks or has with other values, and the limits and budgets that only
// the store has: one line for each, which names it. It changes nothing.
func (s *View) Undeclared(ctx context.Context, limits []bound.Limit, budgets []bound.Budget, profiles []model.Profile) (missing, more []string, err error) {
	m1, o1, err1 := s.limitsApart(ctx, limits)
	m2, o2, err2 := s.budgetsApart(ctx, budgets)
	m3, err3 := s.profilesApart(ctx, profiles)
	return append(append(m1, m2...), m3...), append(o1, o2...), errors.Join(err1, err2, err3)
}

// apart compares what is wanted with what exists, by target.
func apart[K comparable, V any](sort string, want, have map[K]V, same func(a, b V) bool, name func(K) string) (missing, more []string) {
	for about, w := range want {
		switch h, there := have[about]; {
		case !there:
			missing = append(missing, fmt.Sprintf("%s of %s: missing", sort, name(about)))
		case !same(w, h):
			missing = append(missing, fmt.Sprintf("%s of %s: different", sort, name(about)))
		}
	}
	for about := range have {
		if _, wanted := want[about]; !wanted {
			more = append(more, fmt.Sprintf("%s of %s", sort, name(about)))
		}
	}
	return missing, more
}

func (s *View) limitsApart(ctx context.Context, limits []bound.Limit) (missing, more []string, err error) {
	all, err := s.base.Store.Limits(ctx)
	if err != nil {
		return nil, nil, err
	}
	want, have := map[bound.LimitTarget]bound.Limit{}, map[bound.LimitTarget]bound.Limit{}
	for i := range limits {
		l, err := bounding.Whole(limits[i])
		if err != nil {
			return nil, nil, err
		}
		want[l.About] = l
	}
	for i := range all {
		have[all[i].About] = all[i].Limit
	}
	missing, more = apart("limit", want, have, func(a, b bound.Limit) bool { return a == b }, bound.LimitTarget.String)
	return missing, more, nil
}

func (s *View) budgetsApart(ctx context.Context, budgets []bound.Budget) (missing, more []string, err error) {
	all, err := s.base.Store.Budgets(ctx)
	if err != nil {
		return nil, nil, err
	}
	want, have := map[bound.BudgetTarget]bound.Budget{}, map[bound.BudgetTarget]bound.Budget{}
	for i := range budgets {
		b, err := bounding.WholeBudget(budgets[i], s.base.Config.Zone, s.base.StoreNow().Time())
		if err != nil {
			return nil, nil, err
		}
		want[b.About] = b
	}
	for i := range all {
		have[all[i].About] = all[i].Budget
	}
	same := func(a, b bound.Budget) bool { return a.Amount == b.Amount && a.Then == b.Then && a.Zone == b.Zone } // the rules of a zone are renewed by each start
	missing, more = apart("budget", want, have, same, bound.BudgetTarget.String)
	return missing, more, nil
}

// profilesApart ignores agents that the file does not name: a profile need not come from a file.
func (s *View) profilesApart(ctx context.Context, profiles []model.Profile) (missing []string, err error) {
	for i := range profiles {
		p := &profiles[i]
		stored, err := s.base.Store.ProfileOf(ctx, p.Agent)
		if err != nil {
			return missing, err
		}
		if len(stored) == 0 {
			missing = append(missing, fmt.Sprintf("profile of agent %q: missing", p.Agent))
			continue
		}
		have, err := record.DecodeProfile(stored)
		if err != nil || !s.sameProfile(*p, have) {
			missing = append(missing, fmt.Sprintf("profile of agent %q: different", p.Agent))
		}
	}
	return missing, nil
}

// sameProfile reports whether a stored profile has the same content.
func (s *View) sameProfile(p model.Profile, have record.Profile) bool {
	if p.Zone == "" {
		p.Zone = s.base.Config.Zone
	}
	want := codec.ProfileRecord(&p)
	codec.ProfileBounds(&want, &p)
	want.Revision, want.Replanning = have.Revision, have.Replanning
	stored, err := record.DecodeProfile(want.Encode())
	return err == nil && reflect.DeepEqual(stored, have)
}
