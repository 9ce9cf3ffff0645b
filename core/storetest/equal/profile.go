package equal

// Profiles, and tasks that get other due times.

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/whole"
)

// profile changes the profile of an agent, or the due time of a task of it.
func (d *driver) profile() {
	agent := d.agent()
	if d.pick(2) == 0 {
		d.replan(store.Replan{
			Agent: agent, ID: fmt.Sprintf("t%02d", d.pick(43)), Due: moment.Millis(d.clock.Now().UnixMilli()).Add(time.Duration(d.pick(100)) * 50 * time.Millisecond),
			State: []byte([]string{"", "planned"}[d.pick(2)]),
		})
		return
	}
	c := store.ProfileChange{Agent: agent, Now: []byte([]string{"", "one", "two"}[d.pick(3)])}
	if d.pick(4) > 0 {
		var err error
		c.Was, err = d.a.ProfileOf(d.Context(), agent)
		require.NoError(d, err)
	}
	if len(c.Now) > 0 && d.pick(3) > 0 { // what it bounds goes with it
		c.Now = fmt.Appendf(nil, "bounds %d", d.pick(1000))
		limit := d.someLimit()
		limit.About = bound.LimitTarget{Agent: agent, Kind: limit.About.Kind, Key: limit.About.Key}
		c.Limits = []bound.Limit{limit}
		budget := d.someBudget()
		budget.About.LimitTarget = bound.LimitTarget{Agent: agent, Kind: budget.About.Kind}
		c.Budgets = []bound.Budget{budget}
		if d.pick(2) == 0 {
			c.Quota = d.quota()
		}
	}
	if len(c.Now) > 0 {
		c.Tenant = tenants[d.pick(len(tenants))]
		c.Now = append(c.Now, c.Tenant...)
	}
	if len(c.Was) > 0 && d.pick(3) == 0 { // tasks that recur are counted
		c.Now, c.Limits, c.Budgets = c.Was, nil, nil
		page, err := d.a.List(d.Context(), store.List{Agent: agent, Limit: 50, Statuses: []store.Status{store.StatusWaiting, store.StatusInProgress}})
		require.NoError(d, err)
		c.Recurring = page.Tasks
	}
	ra, ea := d.a.Profile(d.Context(), []store.ProfileChange{c})
	rb, eb := d.b.Profile(d.Context(), []store.ProfileChange{c})
	d.same("profile", ea, eb, ra, rb)
	d.note(&c, ra)
}

// replan gives a task another due time; each store gets the version that it has given.
func (d *driver) replan(r store.Replan) {
	if len(d.runs) > 0 && d.pick(2) == 0 {
		last := &d.runs[max(len(d.runs)-1-d.pick(10), 0)]
		r.Agent, r.ID = last.Agent, last.ID
	}
	in := func(s store.Store) ([]store.Effect, error) {
		page, err := s.Get(d.Context(), store.Get{Agent: r.Agent, IDs: []string{r.ID}})
		require.NoError(d, err)
		r := r
		r.Version, r.Was = page.Tasks[0].Version, page.Tasks[0].Due
		return s.Replan(d.Context(), []store.Replan{r})
	}
	ra, ea := in(d.a)
	rb, eb := in(d.b)
	d.same("replan", ea, eb, ra, rb)
}

// profiles compares all profiles, whatever the pages.
func (d *driver) profiles() {
	require.Equal(d, whole.Profiles(d.T, d.a, 2), whole.Profiles(d.T, d.b, 2), "profiles")
}

// tenants are those of agents; few, so that some agents share one, and some have none.
var tenants = []string{"", "acme", "zeta", "b:{}"}

// crowd gives agents tenants and many tasks, and claims few of them at a time while more come.
func (d *driver) crowd() {
	for _, agent := range agents {
		was, err := d.a.ProfileOf(d.Context(), agent)
		require.NoError(d, err)
		c := store.ProfileChange{Agent: agent, Was: was, Now: []byte("crowd"), Tenant: tenants[d.pick(len(tenants))]}
		c.Now = append(c.Now, c.Tenant...)
		ra, ea := d.a.Profile(d.Context(), []store.ProfileChange{c})
		rb, eb := d.b.Profile(d.Context(), []store.ProfileChange{c})
		d.same("profile", ea, eb, ra, rb)
		d.note(&c, ra)
	}
	for range 6 {
		d.submit()
	}
	for range 8 {
		d.clock.Advance(time.Duration(d.pick(60)) * time.Millisecond)
		for range d.pick(3) {
			d.claim()
			d.settle()
		}
		d.submit()
	}
}
