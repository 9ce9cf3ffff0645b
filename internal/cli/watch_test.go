package cli_test

// --watch without a terminal.

import (
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
)

// With --json it adds lines, of a store and of a server, until it is told to stop, which is no failure.
func TestWatchAddsLines(t *testing.T) {
	t.Parallel()
	local, far := served(t, "")
	for _, w := range []*world{local, far} {
		for _, args := range [][]string{{"stats", "--watch=100ms", "--json"}, {"list", "--json", "--watch", "100ms", "--agent", "ada"}, {"queue", "--watch", "PT0.1S", "--json"}} {
			r := w.start(t, args...)
			r.lineNumber(t, 3)
			code, _ := r.stop(t, syscall.SIGINT)
			assert.Equal(t, 0, code, "%q", args)
			for _, line := range r.all() {
				parse[map[string]any](t, line)
			}
		}
	}
	oneLine(t, local.duly(t, "stats", "--watch=1ms"), 2, "would ask too often")
	oneLine(t, local.duly(t, "stats", "--watch=soon"), 2, "--watch")
	oneLine(t, local.duly(t, "stats", "--watch=0s"), 2, "--watch must not be 0s")
}

// lineNumber waits for so many lines.
func (r *running) lineNumber(t *testing.T, n int) {
	t.Helper()
	for len(r.all()) < n {
		r.mu.Lock()
		more := r.more
		enough := len(r.lines) >= n
		r.mu.Unlock()
		if enough {
			return
		}
		select {
		case <-more:
		case <-r.ended:
			assert.Fail(t, "it ended", r.log())
			return
		case <-t.Context().Done():
			return
		}
	}
}

// all are the lines so far.
func (r *running) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.lines...)
}
