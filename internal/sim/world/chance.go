package world

import "sync"

// madeUp is where ids come from that nobody has chosen: the same ones in each play.
type madeUp struct {
	mu   sync.Mutex
	from dice
}

// Read never fails.
func (m *madeUp) Read(b []byte) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i := range b {
		b[i] = byte(m.from.Uint32())
	}
	return len(b), nil
}
