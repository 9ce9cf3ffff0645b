package core

// The workers: goroutines that call handlers.

import "sync"

// workers call the handlers of a pull. Each handler has a goroutine of its own while it runs, but one that has returned leaves its
// goroutine to the next: where handlers are quick, few goroutines start and grow their stacks. None waits for work, so nothing is
// left of them when nothing runs.
type workers struct {
	mu     sync.Mutex
	queue  []*call // to be begun, in their order
	coming bool    // a goroutine is on its way to the queue
}

// add has a call made at once.
func (w *workers) add(c *call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, c)
	w.send()
}

// send sees to it that somebody comes for what is in the queue, so that none in it waits for the end of another. The mutex is held.
func (w *workers) send() {
	if len(w.queue) > 0 && !w.coming {
		w.coming = true
		go w.work()
	}
}

// work makes calls until none is in the queue.
func (w *workers) work() {
	w.mu.Lock()
	w.coming = false
	for len(w.queue) > 0 {
		c := w.queue[0]
		w.queue[0] = nil
		if w.queue = w.queue[1:]; len(w.queue) == 0 {
			w.queue = nil
		}
		w.send() // it may be long until this goroutine is back, or it ends with its handler
		w.mu.Unlock()
		c.run()
		w.mu.Lock()
	}
	w.mu.Unlock()
}
