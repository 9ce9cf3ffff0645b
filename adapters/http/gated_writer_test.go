package http_test

import (
	"net/http/httptest"
	"sync"
)

// gatedWriter is a connection whose second write waits for a gate.
type gatedWriter struct {
	*httptest.ResponseRecorder

	gate, first chan struct{}
	wrote       chan struct{}
	mu          sync.Mutex
	writes      int
}

func (w *gatedWriter) Write(data []byte) (int, error) {
	w.mu.Lock()
	w.writes++
	n := w.writes
	w.mu.Unlock()
	if n == 1 {
		close(w.first)
	} else {
		<-w.gate
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	written, err := w.ResponseRecorder.Write(data)
	select {
	case w.wrote <- struct{}{}:
	default:
	}
	return written, err
}

func (w *gatedWriter) text() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Body.String()
}
