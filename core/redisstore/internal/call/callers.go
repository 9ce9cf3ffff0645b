package call

// The names under which the scripts keep their answers, so that a call whose answer was lost is not carried out twice.

import (
	"crypto/rand"
	"encoding/binary"
	"math/bits"
	"strconv"
	"sync"
)

// callers names the calls of a store that keep their answers in Redis (scripts/answers.lua). A name is that of the process
// and a number, the smallest that no other call under way has: so a process leaves as many answers behind as it had calls
// under way at once, and each call that changes something overwrites an answer that no call waits for.
type callers struct {
	// process is drawn at random for each store, so that two processes never share a name by accident.
	// Ten characters of base 32 are 50 bits.
	process string

	mu sync.Mutex
	// used has a bit for each number that a call under way has. It never shrinks: it is as long as the
	// most calls that were under way at once, divided by 64.
	used []uint64 // a bit for each number
	// nonce counts the calls of this process, so that a script can distinguish a repetition
	// from the next call of the same caller.
	nonce uint64
}

func newCallers() *callers { return &callers{process: rand.Text()[:10]} }

// caller is who makes a call, and which of its calls it is.
// It is kept in the call itself, so that each repetition presents the same name and nonce.
type caller struct {
	name  string
	nonce uint64
	n     int
}

// arg is the last argument of a script that keeps its answers: whether the call may have been carried
// out before, its nonce, and its caller.
// The form is one byte, eight bytes of the nonce and the name: fixed places, which a
// script cuts with sub and never has to parse.
func (c *caller) arg(repeated bool) string {
	b := append(make([]byte, 0, 9+len(c.name)), '0')
	if repeated {
		b[0] = '1'
	}
	return string(append(binary.BigEndian.AppendUint64(b, c.nonce), c.name...))
}

// enter names the callers of those calls whose scripts keep their answers, until the function that it returns is called.
func (c *callers) enter(calls []Call) (leave func()) {
	// One lock for all calls of a round trip: numbers are taken and freed for the whole batch.
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range calls {
		if calls[i].Script.Answers {
			n := c.take()
			c.nonce++
			calls[i].caller = caller{name: c.process + strconv.Itoa(n), nonce: c.nonce, n: n}
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range calls {
			if calls[i].Script.Answers {
				c.used[calls[i].caller.n/64] &^= 1 << (calls[i].caller.n % 64)
			}
		}
	}
}

// take is the smallest free number, which is used from now on.
// The lowest number is preferred to the next unused one, so that a process that is busy for a moment
// does not leave an answer in Redis for every number it ever used.
func (c *callers) take() int {
	for i, word := range c.used {
		if free := bits.TrailingZeros64(^word); free < 64 {
			c.used[i] |= 1 << free
			return 64*i + free
		}
	}
	c.used = append(c.used, 1)
	return 64 * (len(c.used) - 1)
}
