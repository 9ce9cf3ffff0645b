package equal

// What runs print.

import (
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// printing prints a chunk in both stores, or deletes its task, and compares what is kept. Its choices follow from the time, so that what is drawn for
// other calls stays what it was; the ids are of a time that is shorter than any retention, which is the server's own.
func (d *driver) printing() {
	n := d.clock.Now().UnixMilli()
	pick := func(most int64) int64 {
		out := n % most
		n /= most
		return out
	}
	id := fmt.Sprintf("p%d", d.clock.Now().Unix()/50)
	c := output.Chunk{
		Agent: agents[pick(3)], ID: id, Turn: int(pick(3)), Attempt: int(pick(2)), Fence: store.Fence(1 + pick(3)), Claimed: moment.Millis(pick(5)),
		Number: 1 + pick(4), Piece: output.Piece{At: pick(7), Data: []byte(strings.Repeat("x", int(pick(9)))), Last: pick(2) == 0},
	}
	c.Keep = 1 + pick(c.Number)
	a, b := d.a.(output.Keeper), d.b.(output.Keeper)
	ra, ea := a.Print(d.Context(), []output.Chunk{c, c})
	rb, eb := b.Print(d.Context(), []output.Chunk{c, c})
	d.same("print", ea, eb, ra, rb)
	if pick(5) == 0 {
		gone := []store.Deletion{{Agent: c.Agent, ID: c.ID}}
		ra, ea := d.a.Delete(d.Context(), gone)
		rb, eb := d.b.Delete(d.Context(), gone)
		d.same("delete", ea, eb, ra, rb)
	}
	pa, ea := a.Printed(d.Context(), c.Agent, c.ID)
	pb, eb := b.Printed(d.Context(), c.Agent, c.ID)
	d.same("printed", ea, eb, pa, pb)
}
