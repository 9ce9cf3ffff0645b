package decide

// The callback delivery of a verdict.

import (
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// end is the id of the delivery for the end of a run: no other run has its fence, and it has one end of each status.
func (d *Facts) end(status store.Status) string {
	if d.Body.Callback == nil {
		return ""
	}
	return codec.CallbackID(d.Claimed.ID, fmt.Sprint(d.Claimed.Fence, status))
}
