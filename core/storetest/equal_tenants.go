package storetest

// Equal: crowds, in which more is due of several tenants than claims may take.

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// equalTenants are those of agents; few, so that some agents share one, and some have none.
var equalTenants = []string{"", "acme", "zeta", "b:{}"}

// crowd gives agents tenants and many tasks, and claims few of them at a time while more come.
func (d *driver) crowd() {
	for _, agent := range equalAgents {
		was, err := d.a.ProfileOf(d.Context(), agent)
		require.NoError(d, err)
		c := store.ProfileChange{Agent: agent, Was: was, Now: []byte("crowd"), Tenant: equalTenants[d.pick(len(equalTenants))]}
		c.Now = append(c.Now, c.Tenant...)
		ra, ea := d.a.Profile(d.Context(), []store.ProfileChange{c})
		rb, eb := d.b.Profile(d.Context(), []store.ProfileChange{c})
		d.same("profile", ea, eb, ra, rb)
		noteQuota(d, &c, ra)
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
