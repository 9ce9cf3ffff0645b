package world

import "sync"

// madeUp generates ids that no client chose: the same ones in each play.
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
