package redisstore

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
// under way at once, and each call that changes something writes over an answer that nobody waits for.
type callers struct {
	process string

	mu    sync.Mutex
	used  []uint64 // a bit for each number
	nonce uint64
}

func newCallers() *callers { return &callers{process: rand.Text()[:10]} }

// caller is who makes a call, and which of its calls it is.
type caller struct {
	name  string
	nonce uint64
	n     int
}

// arg is what the scripts are told: whether the call may have been carried out before, its nonce, and its caller.
func (c *caller) arg(repeated bool) string {
	b := append(make([]byte, 0, 9+len(c.name)), '0')
	if repeated {
		b[0] = '1'
	}
	return string(append(binary.BigEndian.AppendUint64(b, c.nonce), c.name...))
}

// enter names the callers of those calls whose scripts keep their answers, until the function that it returns is called.
func (c *callers) enter(calls []call) (leave func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range calls {
		if calls[i].script.answers {
			n := c.take()
			c.nonce++
			calls[i].caller = caller{name: c.process + strconv.Itoa(n), nonce: c.nonce, n: n}
		}
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for i := range calls {
			if calls[i].script.answers {
				c.used[calls[i].caller.n/64] &^= 1 << (calls[i].caller.n % 64)
			}
		}
	}
}

// take is the smallest free number, which is used from now on.
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
