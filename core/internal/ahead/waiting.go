package ahead

import (
	"slices"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// Waiting are things that wait for their times. It is safe for concurrent use.
type Waiting[T any] struct {
	clock model.Clock
	begin func([]T)

	mu    sync.Mutex
	items []item[T] // by their times, those of the same time as they came
	stop  func() bool
	set   time.Time // when the timer goes off; zero if there is none
}

type item[T any] struct {
	at   time.Time
	what T
}

// NewWaiting makes one that calls begin with what has waited until its time, in a goroutine of its own and in the order of the times.
func NewWaiting[T any](clock model.Clock, begin func([]T)) *Waiting[T] {
	return &Waiting[T]{clock: clock, begin: begin}
}

// Add lets something wait until a time.
func (w *Waiting[T]) Add(at time.Time, what T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := len(w.items)
	for i > 0 && at.Before(w.items[i-1].at) {
		i--
	}
	w.items = slices.Insert(w.items, i, item[T]{at, what})
	w.arm()
}

// First is the first time that something waits for; the zero time if nothing waits.
func (w *Waiting[T]) First() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) == 0 {
		return time.Time{}
	}
	return w.items[0].at
}

// Last is the last time that something waits for; the zero time if nothing waits.
func (w *Waiting[T]) Last() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.items) == 0 {
		return time.Time{}
	}
	return w.items[len(w.items)-1].at
}

// Take takes out what has not begun, as far as it is meant.
func (w *Waiting[T]) Take(which func(*T) bool) []T {
	w.mu.Lock()
	defer w.mu.Unlock()
	var taken []T
	w.items = slices.DeleteFunc(w.items, func(i item[T]) bool {
		if !which(&i.what) {
			return false
		}
		taken = append(taken, i.what)
		return true
	})
	return taken
}

// arm sets the timer to the first time. The mutex is held.
func (w *Waiting[T]) arm() {
	if len(w.items) == 0 || !w.set.IsZero() && !w.items[0].at.Before(w.set) {
		return
	}
	if w.stop != nil {
		w.stop()
	}
	w.set = w.items[0].at
	w.stop = w.clock.AfterFunc(max(w.set.Sub(w.clock.Now()), 0), w.due)
}

// due begins what has waited until its time.
func (w *Waiting[T]) due() {
	w.mu.Lock()
	now, n := w.clock.Now(), 0
	for n < len(w.items) && !w.items[n].at.After(now) {
		n++
	}
	ready := make([]T, n)
	for i := range ready {
		ready[i] = w.items[i].what
	}
	w.items = slices.Delete(w.items, 0, n)
	w.set, w.stop = time.Time{}, nil
	w.arm()
	w.mu.Unlock()
	if n > 0 {
		w.begin(ready)
	}
}
