package gcf

import "sync"

// occasion is one time of one schedule, or one message of one sender.
type occasion struct{ job, time string }

// memory knows the latest occasions whose tick succeeded in this process. It only saves the work of a repeat: that no
// task runs twice is what the lease in the store is for, as a repeat may meet another process.
type memory struct {
	mu     sync.Mutex
	latest [mostOccasions]occasion
	next   int
}

// mostOccasions is far more than the repeats of one schedule: they come within a day, and one process lives for hours.
const mostOccasions = 64

func (m *memory) has(key occasion) bool {
	if key == (occasion{}) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range m.latest {
		if m.latest[i] == key {
			return true
		}
	}
	return false
}

func (m *memory) add(key occasion) {
	if key == (occasion{}) || m.has(key) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.latest[m.next] = key
	m.next = (m.next + 1) % mostOccasions
}
