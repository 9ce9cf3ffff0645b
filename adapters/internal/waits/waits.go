// Package waits bounds requests that wait.
package waits

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
)

// Bound bounds how many requests wait at once, of each credential and of all together. A wait holds a connection while it lasts:
// without a bound one client could take all that the server has. Both bounds are of this process.
type Bound struct {
	mu   sync.Mutex
	all  int
	each map[[sha256.Size]byte]int // by a digest of the credential
}

// allWaits is how many times as many requests as those of one credential may wait at once.
const allWaits = 8

// Enter lets a request of a caller wait until it calls leave, or refuses it. Requests without a credential share one bound.
func (w *Bound) Enter(who [sha256.Size]byte, most int) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.each == nil {
		w.each = map[[sha256.Size]byte]int{}
	}
	switch {
	// guard: waits
	case w.each[who] >= most:
		return nil, tooMany(fmt.Sprintf("%d requests of this credential are already waiting; wait for less at once, or retry later", most))
	case w.all >= allWaits*most:
		return nil, tooMany(fmt.Sprintf("%d requests are already waiting; retry later", allWaits*most))
	}
	w.all++
	w.each[who]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.all--
		if w.each[who]--; w.each[who] == 0 {
			delete(w.each, who)
		}
	}, nil
}

// retryWait is when a request that was refused because too many wait may try again.
const retryWait = 5 * time.Second

// tooMany is the refusal of a wait, with a time to come back.
func tooMany(detail string) error { return problem.TooMany(detail, retryWait) }
