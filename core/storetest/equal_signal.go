package storetest

// Equal: signals, and what tasks were told.

import (
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// equalSignals are the keys that tasks wait for; none of them ends a wait alone.
var equalSignals = []string{"", "yes", "no:1"}

// signal tells whoever waits, and asks what some tasks were told.
func (d *driver) signal() {
	key := equalSignals[1+d.pick(2)]
	n := []store.Signal{{Agent: d.agent(), Key: key, Payload: []byte{byte(d.pick(256))}, Keep: time.Duration(1+d.pick(100)) * 20 * time.Millisecond}}
	n[0].Approval = d.pick(2) == 0
	if d.pick(3) == 0 {
		n[0].ID, n[0].Wait = fmt.Sprintf("t%02d", d.pick(43)), store.Fence(d.pick(3))
	}
	ra, ea := d.a.Signal(d.Context(), n)
	rb, eb := d.b.Signal(d.Context(), n)
	d.same("signal", ea, eb, ra, rb)
	if len(d.runs) == 0 {
		return
	}
	c := &d.runs[d.pick(len(d.runs))]
	w := []store.Wait{{Agent: c.Agent, ID: c.ID, Key: key}}
	ha, ea := d.a.Heard(d.Context(), w)
	hb, eb := d.b.Heard(d.Context(), w)
	d.same("heard", ea, eb, ha, hb)
}
