package cli_test

// Commands on a terminal: what they draw there, and that nothing of a task drives it.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// screen is a terminal that a command writes to.
type screen struct {
	cmd   *exec.Cmd
	ours  *os.File // the side of whoever looks
	drawn chan string
	text  chan string // all of it, at the end
}

// read reads to the end, which is an error of a terminal whose other side is closed.
func (s *screen) read() {
	var all strings.Builder
	buffer := make([]byte, 64<<10)
	for {
		n, err := s.ours.Read(buffer)
		all.Write(buffer[:n])
		if err != nil {
			s.text <- all.String()
			return
		}
		select {
		case s.drawn <- string(buffer[:n]):
		default: // nobody waits
		}
	}
}

// until waits until something was drawn after a moment at which it was not.
func (s *screen) until(t *testing.T, part string) {
	t.Helper()
	for timeout := time.After(20 * time.Second); ; {
		select {
		case text := <-s.drawn:
			if strings.Contains(text, part) {
				return
			}
		case <-timeout:
			require.Fail(t, "it was not drawn", part)
		}
	}
}

// onScreen starts a command whose standard output and input are a terminal of some columns.
func (w *world) onScreen(t *testing.T, columns uint16, args ...string) *screen {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminals here: ", err)
	}
	require.NoError(t, unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0))
	n, err := unix.IoctlGetUint32(int(ours.Fd()), unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetWinsize(int(ours.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	theirs, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	s := &screen{cmd: exec.Command(binary, args...), ours: ours, drawn: make(chan string), text: make(chan string, 1)}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stdin = append(append([]string(nil), w.env...), "TERM=xterm"), theirs, theirs
	s.cmd.Stderr = theirs
	require.NoError(t, s.cmd.Start())
	require.NoError(t, theirs.Close())
	go s.read()
	t.Cleanup(func() { _ = s.cmd.Process.Kill(); _ = ours.Close() })
	return s
}

// end waits for the end of the command, and returns what was drawn, without the carriage returns that a terminal adds.
func (s *screen) end(t *testing.T) (string, int) {
	t.Helper()
	_ = s.cmd.Wait()
	select {
	case text := <-s.text:
		return strings.ReplaceAll(text, "\r\n", "\n"), s.cmd.ProcessState.ExitCode()
	case <-time.After(20 * time.Second):
		require.Fail(t, "the terminal stays open")
		return "", 0
	}
}

// ownCodes are what duly itself sends to a terminal: colours, and where to draw.
var ownCodes = regexp.MustCompile("\x1b\\[(3[1-9]m|0m|H|K|J)|\r")

// Texts that a terminal could take for more than text: in ids, which have no control characters, and in all others.
const (
	oddID   = "\u202e\u2066\u2028\u200b\ufeff\U000e0041"
	oddText = "\x1b]0;owned\x07\x1b[2J\x1b[6n\x9b31m\u009b31m\u0085\r\nforged\x00\x7f\b" + oddID
)

// odd is the first character that may not reach a terminal; empty if there is none.
func odd(text string) string {
	text = ownCodes.ReplaceAllString(text, "")
	for i, r := range text {
		if r == utf8.RuneError && !strings.HasPrefix(text[i:], "\ufffd") || r != '\n' && !unicode.IsPrint(r) {
			return text[max(0, i-30):min(len(text), i+30)]
		}
	}
	return ""
}

// hostile fills a store with texts that try to drive a terminal.
func hostile(t *testing.T, w *world) (agent, id string) {
	t.Helper()
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: w.redis.URL})
	require.NoError(t, err)
	defer st.Close()
	s, err := core.New(st, core.Config{Name: "process" + oddID, Presence: st, Recent: st})
	require.NoError(t, err)
	core.Handle(s, "bad", func(context.Context, *core.Task[json.RawMessage]) error {
		return core.SkipRetry(errors.New("boom " + oddText))
	})
	core.Handle(s, "good", func(_ context.Context, task *core.Task[json.RawMessage]) error {
		return task.SetResult("result " + oddText)
	})
	agent, id = "agent"+oddID, "id"+oddID
	for kind, id := range map[string]string{"bad": id + "0", "good": id + "1", "none": id + "2"} {
		_, err = s.Submit(t.Context(), core.NewTask{
			Agent: agent, ID: id, Kind: kind, Payload: oddText, Group: "group" + oddID, LimitKey: "key" + oddID, Tags: []string{"tag" + oddID},
		})
		require.NoError(t, err)
	}
	_, err = s.Submit(t.Context(), core.NewTask{Agent: agent, ID: id + "3", Kind: "good", Every: time.Hour, LimitKey: "key" + oddID})
	require.NoError(t, err)
	_, err = s.RunDue(t.Context(), core.Scope{})
	require.Equal(t, core.CodeRunsFailed, core.CodeOf(err), err)
	s.Announce(t.Context())
	require.NoError(t, s.SetLimits(t.Context(), core.Limit{About: core.LimitTarget{Key: "key" + oddID}, Concurrency: 2}))
	require.NoError(t, s.SetBudgets(t.Context(), core.Budget{
		About:  core.BudgetTarget{LimitTarget: core.LimitTarget{Key: "key" + oddID, Each: core.EachKey}, Unit: "runs", Per: core.PerDay},
		Amount: 1_000_000_000,
	}))
	_, err = s.SetProfile(t.Context(), core.Profile{Agent: agent, Zone: "Asia/Tokyo", Labels: map[string]string{"label": "value" + oddID}})
	require.NoError(t, err)
	for _, target := range []core.Target{{Agent: agent, ID: id + "2"}, {Key: "key" + oddID}} {
		require.NoError(t, s.Pause(t.Context(), target, core.Pause{Reason: "reason " + oddID, By: "by " + oddID, Ahead: target.ID == ""}))
	}
	return agent, id
}

// Nothing of a task reaches a terminal as more than text, in any command, whether it asks the store or a server.
func TestNothingOfATaskDrivesATerminal(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs nearly every command, each several times")
	}
	local, far := served(t, "")
	agent, id := hostile(t, local)
	commands := [][]string{
		{"list"},
		{"list", "--agent", agent},
		{"list", "--status", "failed"},
		{"jobs", agent},
		{"agents"},
		{"agents", "--limit", "1"},
		{"pauses"},
		{"processes"},
		{"kinds"},
		{"queue"},
		{"queue", "bad"},
		{"stats"},
		{"doctor"},
		{"audit"},
		{"limit", "list"},
		{"budget", "list"},
		{"agent", "show", agent},
		{"agent", "list"},
		{"agent", "show", "x" + oddID},
		{"agent", "forget", agent, "--dry-run"},
		{"bulk", "replay", "--agent", agent},
		{"signal", agent, "key" + oddID},
		{"pause", agent},
		{"resume", agent},
		{"run", agent, id + "3"},
		{"edit", agent, id + "3", "--set", `{"level":1}`},
		{"cancel", agent, id + "3", "--reason", "x"},
		{"replay", agent, id + "0"},
		{"delete", agent, id + "1"},
		{"status", agent, "none" + oddID},
		{"context", "show", "none" + oddID},
		{"context", "list"},
		{"stats", "--context", "none" + oddID},
		{"kind" + oddID},
		{"list", "--kind", oddID},
	}
	for _, one := range []string{"status", "explain", "runs"} {
		for _, n := range []string{"0", "1", "2", "3"} {
			commands = append([][]string{{one, agent, id + n}}, commands...)
		}
	}
	shown := strings.Builder{}
	for _, args := range commands {
		for name, w := range map[string]*world{"store": local, "server": far} {
			drawn, _ := w.onScreen(t, 100, args...).end(t)
			assert.Empty(t, odd(drawn), "duly %q on the %s", args, name)
			r := w.duly(t, append(args, "--json")...)
			assert.Empty(t, odd(r.stdout+r.stderr), "duly %q --json on the %s", args, name)
			r = w.duly(t, args...)
			assert.Empty(t, odd(r.stdout+r.stderr), "duly %q on the %s", args, name)
			assert.NotContains(t, r.stdout, "\x1b")
			shown.WriteString(drawn)
		}
	}
	assert.Contains(t, shown.String(), "forged", "the texts were shown")
	assert.Contains(t, shown.String(), "boom", "the errors were shown")
	assert.Contains(t, shown.String(), "reason ", "the reasons were shown")
}

// On a terminal a table fits, has colours and distances; --wide shows everything, and NO_COLOR has no colours.
func TestATableFitsTheTerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long := "tenant-000042/customer-771/" + strings.Repeat("x", 60) + "/nightly"
	w.ok(t, "submit", "--agent", "ada", "--id", long, "--kind", "note", "--delay", "3h")
	w.ok(t, "submit", "--agent", "東京", "--id", "要約", "--kind", "note", "--delay", "3h")
	w.ok(t, "cancel", "東京", "要約")

	drawn, code := w.onScreen(t, 70, "list", "--agent", "ada").end(t)
	assert.Equal(t, 0, code)
	assert.Contains(t, drawn, "…")
	assert.Contains(t, drawn, "/nightly")
	assert.Contains(t, drawn, "in 2h59m")
	for line := range strings.Lines(ownCodes.ReplaceAllString(drawn, "")) {
		assert.LessOrEqual(t, table.Width(strings.TrimSuffix(line, "\n")), 70, line)
	}
	drawn, _ = w.onScreen(t, 70, "list", "--agent", "ada", "--wide").end(t)
	assert.Contains(t, drawn, long)
	assert.NotContains(t, drawn, "…")
	assert.Regexp(t, `\dZ `, drawn, "times are whole")
	assert.Contains(t, w.ok(t, "list", "--agent", "ada"), long, "nothing is cut in a pipe")

	drawn, _ = w.onScreen(t, 70, "list", "--agent", "東京", "--status", "cancelled").end(t)
	assert.Contains(t, drawn, "\x1b[33mcancelled\x1b[0m")
	plain, columns := *w, *w
	plain.env = append(append([]string(nil), w.env...), "NO_COLOR=1")
	drawn, _ = plain.onScreen(t, 70, "list", "--agent", "東京", "--status", "cancelled").end(t)
	assert.NotContains(t, drawn, "\x1b")
	columns.env = append(append([]string(nil), w.env...), "COLUMNS=50")
	drawn, _ = columns.onScreen(t, 300, "list", "--agent", "ada").end(t)
	assert.Contains(t, drawn, "…", "COLUMNS counts before the size")
}

// redrawn is what a command draws on a store that is empty, and then has a task, until Ctrl-C.
func (w *world) redrawn(t *testing.T, empty string, args ...string) string {
	t.Helper()
	s := w.onScreen(t, 80, args...)
	s.until(t, empty)
	w.ok(t, "submit", "--agent", "appears", "--id", "1", "--kind", "appears", "--delay", "1h")
	s.until(t, "appears")
	require.NoError(t, s.cmd.Process.Signal(syscall.SIGINT))
	drawn, code := s.end(t)
	assert.Equal(t, 0, code, drawn)
	return drawn
}

// --watch redraws a terminal, and ends with Ctrl-C and exit code 0.
func TestWatchRedrawsATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	drawn := w.redrawn(t, "no tasks", "queue", "--watch", "100ms")
	assert.Contains(t, drawn, "appears")
	assert.Greater(t, strings.Count(drawn, "\x1b[H"), 1)
	assert.Empty(t, odd(drawn))
}

// duly top redraws a terminal without being asked to, and a sentence of explain is broken between its words.
func TestWhatIsWrittenForATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.redrawn(t, "no agents", "top", "--watch", "100ms")
	w.ok(t, "pause", "appears", "--reason", strings.Repeat("moves ", 30))
	drawn, _ := w.onScreen(t, 60, "explain", "appears", "1").end(t)
	for line := range strings.Lines(drawn) {
		if strings.HasPrefix(line, "moves") {
			assert.LessOrEqual(t, table.Width(strings.TrimSuffix(line, "\n")), 60, line)
		}
	}
	drawn, _ = w.onScreen(t, 60, "submit", "--help").end(t)
	for line := range strings.Lines(drawn) {
		if !strings.HasPrefix(line, "  duly submit") && len(strings.Fields(line)) > 1 { // an address is one word
			assert.LessOrEqual(t, table.Width(strings.TrimSuffix(line, "\n")), 60, line)
		}
	}
	assert.Contains(t, drawn, "\nHow often:\n")
}
