package decide

// The delivery that a verdict brings.

import (
	"fmt"

	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// end names an end that is a run's: no other run has its fence, and it has one end of each status.
func (d *Decision) end(status store.Status) string {
	if d.Body.Callback == nil {
		return ""
	}
	return codec.CallbackID(d.Claimed.ID, fmt.Sprint(d.Claimed.Fence, status))
}
