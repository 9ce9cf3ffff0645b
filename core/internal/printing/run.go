package printing

// The output of one run.

import (
	"slices"
	"sync"

	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// slack is how much more than the most is kept, so that not each write moves all of it.
const slack = output.Most / 4

// Run is what a run has printed, as far as it is to be kept. It is safe for concurrent use: lines of several goroutines are kept whole.
type Run struct {
	of    *Sender
	sent  chan struct{} // closed once the last chunk is sent or given up
	about output.Chunk  // what all chunks of the run have

	mu      sync.Mutex
	tail    []byte
	written int64 // bytes
	taken   int64 // of them, sent
	number  int64 // of the last chunk
	kept    []chunk
	whole   bool // the next chunk has all that is kept, as one before it may not be stored
	queued  bool
	isOver  bool
	tries   int
	givenUp bool
	done    bool // sent is closed
}

// chunk is one that the store has.
type chunk struct{ number, size int64 }

// Write keeps p, or its end. It never fails and never waits for the store; nil drops all.
func (r *Run) Write(p []byte) (int, error) {
	if r == nil {
		return len(p), nil
	}
	r.mu.Lock()
	news := false
	if !r.isOver && !r.givenUp && len(p) > 0 {
		r.written += int64(len(p))
		last := p[max(0, len(p)-output.Most):]
		if len(r.tail)+len(last) > output.Most+slack {
			keep := min(output.Most-len(last), len(r.tail))
			r.tail = append(r.tail[:0], r.tail[len(r.tail)-keep:]...)
		}
		r.tail = append(r.tail, last...)
		news, r.queued = !r.queued, true
	}
	r.mu.Unlock()
	if news {
		r.of.news(r)
	}
	return len(p), nil
}

// end ends it. It reports whether there is anything to send.
func (r *Run) end(lost bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isOver = true
	return !lost && !r.givenUp && r.written > 0
}

// finish tells who waits that nothing more of the run is sent.
func (r *Run) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.close()
}

// close closes sent, once: a run that ends while its turn comes is in two turns. The mutex is held.
func (r *Run) close() {
	if !r.done {
		r.done = true
		close(r.sent)
	}
}

// isDone reports whether nothing more of the run is to be sent.
func (r *Run) isDone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.done
}

// isEnded reports whether the run has ended.
func (r *Run) isEnded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isOver
}

// take is the next chunk: what was not sent yet, as far as it is kept.
func (r *Run) take() output.Chunk {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.queued = false
	r.number++
	c := r.about
	c.Number = r.number
	if len(r.kept) >= output.MostChunks {
		r.whole = true
	}
	from := max(r.written-output.Most, 0) // tail has that much at least
	if !r.whole {
		from = max(r.taken, from)
	}
	c.At, c.Last = from, r.isOver
	c.Data = slices.Clone(r.tail[int64(len(r.tail))-(r.written-from):])
	// Chunks are dropped without which there are enough bytes.
	c.Keep = c.Number
	if !r.whole {
		size := int64(len(c.Data))
		for i := len(r.kept) - 1; i >= 0 && size < output.Most; i-- {
			size += r.kept[i].size
			c.Keep = r.kept[i].number
		}
	}
	return c
}

// took notes the answer to a chunk. It reports whether the run is to be sent again.
func (r *Run) took(c *output.Chunk, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case err == nil:
		r.taken, r.whole = c.At+int64(len(c.Data)), false
		r.kept = append(slices.DeleteFunc(r.kept, func(k chunk) bool { return k.number < c.Keep }), chunk{c.Number, int64(len(c.Data))})
	case lost(err):
		r.givenUp = true
	default:
		r.whole = true // it may be stored all the same: what comes next takes the place of all
		r.tries++
	}
	again := err != nil && !r.givenUp
	switch {
	case c.Last:
		if again = again && r.tries < mostTries; !again {
			r.close()
		}
	case r.isOver, r.queued: // it waits for its turn already
		again = false
	default:
		r.queued = again
	}
	return again
}
