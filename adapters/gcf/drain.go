package gcf

import (
	"context"
	"sync"
)

// The end: which requests are under way, and how they are cut off before Google kills the instance.

// Drain ends the function: it takes no more requests and waits for those under way. When ctx is done, these are cancelled, so
// that their tasks are released uncharged, and have Config.Margin more to return. The error is nil if all have ended by
// themselves.
//
// Google sends SIGTERM ten seconds before it kills an instance, and the functions framework ends at once: the program that
// starts the function calls Drain on the signal, and then exits. The server writes the answer of the last request after its
// call has returned: http.Server.Shutdown waits for that; with the framework wait a moment.
// It may be called several times, and from any goroutine.
func (f *Function) Drain(ctx context.Context) error {
	idle := f.flights.drain()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	// It has Config.Margin left to settle and release.
	f.flights.cancel()
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.config.Margin)
	defer cancel()
	select {
	case <-idle:
	case <-last.Done():
	}
	return ctx.Err()
}

// flights are the requests under way.
// They are counted by identity, as their contexts have to be cancelled one by one.
type flights struct {
	mu    sync.Mutex
	under map[*flight]struct{}
	idle  chan struct{} // closed when a drain has nothing left to wait for; nil until there is a drain
}

// flight is one request under way.
type flight struct{ cancel context.CancelFunc }

// begin adds a request until end is called, which calls cancel.
func (f *flights) begin(cancel context.CancelFunc) (end func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	// An instance that shuts down answers 503, and the sender tries another one.
	if f.idle != nil {
		return nil, errDraining
	}
	if f.under == nil {
		f.under = map[*flight]struct{}{}
	}
	this := &flight{cancel: cancel}
	f.under[this] = struct{}{}
	return func() {
		cancel()
		f.end(this)
	}, nil
}

// end takes a request off, and tells a drain when it was the last.
func (f *flights) end(this *flight) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.under, this)
	if f.idle != nil && len(f.under) == 0 {
		close(f.idle)
	}
}

// drain lets no more begin. What it returns is closed when all have ended.
func (f *flights) drain() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.idle == nil {
		f.idle = make(chan struct{})
		if len(f.under) == 0 {
			close(f.idle)
		}
	}
	return f.idle
}

// cancel cuts off all requests under way.
func (f *flights) cancel() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for this := range f.under {
		this.cancel()
	}
}
