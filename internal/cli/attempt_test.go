package cli_test

// The number of an attempt, as a webhook, a program, the commands and the log of events say it.

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// The story of a task, call by call: it fails, is snoozed, asks to come later, waits for a signal, fails again and succeeds. told is the attempt
// of each call, and next that of the call after it, or of the last one.
var told, next = []int{1, 2, 2, 2, 2, 3}, []int{2, 2, 2, 2, 3, 3}

// script is the story as a program tells it, which keeps count in a file.
const script = `echo "$DULY_ATTEMPT" >>"%[1]s"; case $(wc -l <"%[1]s" | tr -d ' ') in
1|5) exit 1 ;;
2) echo "duly-snooze: 1ms" >&3 ;;
3) exit 75 ;;
4) echo 'duly-await: {"key": "go"}' >&3; exit 76 ;;
esac`

// hook is the story as a server tells it.
func hook(calls *atomic.Int64) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		switch calls.Add(1) {
		case 1, 5:
			w.WriteHeader(http.StatusBadGateway)
		case 2:
			w.Header().Set("Duly-Snooze", "1ms")
		case 3:
			w.Header().Set("Retry-After", "0")
			w.WriteHeader(http.StatusTooManyRequests)
		case 4:
			w.Header().Set("Duly-Await", `{"key": "go"}`)
			_, _ = io.WriteString(w, "{}")
		}
	}
}

// A webhook, a program, `duly status`, `list`, `runs` and the log of each run say the same of each attempt.
func TestAttemptsAreTheSameEverywhere(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"webhook", "program"} {
		t.Run(by, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			rec := newReceiver(t, hook(&calls))
			count := filepath.Join(t.TempDir(), "count")
			handler := fmt.Sprintf("webhook: %q", rec.URL)
			if by == "program" {
				handler = fmt.Sprintf("exec: [sh, -c, %q]", fmt.Sprintf(script, count))
			}
			w := newWorld(t)
			config := file(t, "handlers: { x: { "+handler+", max_attempts: 4, backoff: 1ms } }")
			_, err := w.scheduler(t).Submit(t.Context(), core.NewTask{Agent: "a", ID: "i", Kind: "x"})
			require.NoError(t, err)
			var logged string
			for i := range told {
				if i == 4 {
					w.ok(t, "signal", "a", "go")
				}
				logged += w.runsUntil(t, config, i+1)
				w.shows(t, next[i])
			}
			var inLog []string
			for _, m := range regexp.MustCompile(` attempt=(\d+) `).FindAllStringSubmatch(logged, -1) {
				inLog = append(inLog, m[1])
			}
			assert.Equal(t, []string{"2", "2", "2", "2", "3"}, inLog, "the log leaves out the first")
			var history []int
			for _, r := range w.objects(t, "runs", "runs", "a", "i") {
				history = append(history, int(r["attempt"].(float64)))
			}
			assert.Equal(t, told, history)
			assert.Regexp(t, `(?s)\nSTARTED +TOOK +ATTEMPT .*m?s +1 +failed.*m?s +2 +snoozed.*m?s +2 +awaiting.*m?s +2 +failed.*m?s +3 +success`, "\n"+w.ok(t, "runs", "a", "i"))
			if by == "program" {
				data, err := os.ReadFile(count)
				require.NoError(t, err)
				assert.Equal(t, []string{"1", "2", "2", "2", "2", "3"}, strings.Fields(string(data)))
				return
			}
			var got []int
			for _, m := range rec.messages() {
				got = append(got, int(parse[map[string]any](t, m.body)["attempt"].(float64)))
			}
			assert.Equal(t, told, got)
		})
	}
}

// runsUntil runs the task until it has had so many runs, and returns what was logged.
func (w *world) runsUntil(t *testing.T, config string, runs int) string {
	t.Helper()
	var log string
	s := w.scheduler(t)
	require.Eventually(t, func() bool {
		log += w.duly(t, "run-due", "--agents", "a", "-c", config, "--max", "1").stderr
		task, err := s.Task(t.Context(), "a", "i")
		require.NoError(t, err)
		return task.RunCount >= int64(runs)
	}, 20*time.Second, 5*time.Millisecond)
	return log
}

// shows demands an attempt of the commands that show a task: as JSON in any case, and for people if it is not the first.
func (w *world) shows(t *testing.T, attempt int) {
	t.Helper()
	assert.EqualValues(t, attempt, w.object(t, "status", "a", "i", "--json")["attempt"])
	text := w.ok(t, "status", "a", "i")
	assert.Equal(t, strconv.Itoa(attempt), regexp.MustCompile(`(?m)^attempt +(\d+)$`).FindStringSubmatch(text)[1])
	assert.EqualValues(t, attempt, w.objects(t, "tasks", "list", "--agent", "a", "--status", "waiting,completed")[0]["attempt"])
	assert.EqualValues(t, attempt, w.object(t, "explain", "a", "i", "--json")["task"].(map[string]any)["attempt"])
}
