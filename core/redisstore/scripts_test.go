package redisstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/internal/luapack"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// header is what the comment at the top of a script promises.
type header struct {
	purpose string
	needs   bool // it says which parts the script is loaded with
	keys    []string
	fixed   int            // arguments before the lists
	lists   []listArgument // what comes after them
	returns string
}

type listArgument struct {
	first, stride int
}

var (
	argLine    = regexp.MustCompile(`^-- ARGV\[(\d+)\] `)
	listLine   = regexp.MustCompile(`^-- ARGV\[(\d*)\.\.\] (\d+) for each [^:]+?(: .*|; .*)?$`)
	returnLine = regexp.MustCompile(`^-- returns (.+)$`)
	keyUse     = regexp.MustCompile(`KEYS\[(\d+)\]`)
	argUse     = regexp.MustCompile(`ARGV\[(\d+)\]`)
	keyName    = regexp.MustCompile(`base \.\. '([a-z]+):?'`)
)

func parseHeader(t *testing.T, text string) (header, string) {
	t.Helper()
	var h header
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		switch {
		case !strings.HasPrefix(line, "--"):
			return h, strings.Join(lines[i:], "\n")
		case i == 0:
			h.purpose = line
		case needsLine.MatchString(line):
			h.needs = true
		case luapack.KeyLine.MatchString(line):
			m := luapack.KeyLine.FindStringSubmatch(line)
			require.Equal(t, strconv.Itoa(len(h.keys)+1), m[1], line)
			h.keys = append(h.keys, m[2])
		case listLine.MatchString(line):
			m := listLine.FindStringSubmatch(line)
			l := listArgument{}
			l.first, _ = strconv.Atoi(m[1])
			l.stride, _ = strconv.Atoi(m[2])
			h.lists = append(h.lists, l)
		case argLine.MatchString(line):
			require.Empty(t, h.lists, "%s: fixed arguments come first", line)
			h.fixed++
			require.Equal(t, strconv.Itoa(h.fixed), argLine.FindStringSubmatch(line)[1], line)
		case returnLine.MatchString(line):
			h.returns = returnLine.FindStringSubmatch(line)[1]
		default:
			require.Regexp(t, `^--  +`, line, "a line that is neither KEYS, ARGV nor returns continues one")
		}
	}
	return h, ""
}

func highest(re *regexp.Regexp, text string) (most int, used map[int]bool) {
	used = map[int]bool{}
	for _, m := range re.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(m[1])
		used[n] = true
		most = max(most, n)
	}
	return most, used
}

// parts are the texts that stand in front of scripts.
func parts() string {
	var b strings.Builder
	for name, file := range redisstore.Packed() {
		if len(file.Keys) == 0 {
			b.WriteString(redisstore.Part(name))
		}
	}
	return b.String()
}

func TestScriptHeadersMatchTheirBodies(t *testing.T) {
	t.Parallel()
	for _, s := range redisstore.ScriptFiles() {
		t.Run(s.Name, func(t *testing.T) {
			t.Parallel()
			h, body := parseHeader(t, s.Text)
			assert.True(t, strings.HasPrefix(h.purpose, "-- "+s.Name+": "), "the first line says what the script is for")
			assert.Equal(t, s.Keys, h.keys, "the keys that the Go call gives it: run make generate")
			assert.True(t, h.needs, "a line says which parts it is loaded with")
			assert.NotEmpty(t, h.returns)
			assert.Equal(t, "agenda", h.keys[0], "layout.lua derives all keys from the first")
			for _, part := range redisstore.Packed()[s.Name].Then {
				body += redisstore.Part(part)
			}
			most, used := highest(keyUse, body)
			assert.LessOrEqual(t, most, len(h.keys))
			for i := 2; i <= len(h.keys); i++ {
				named := used[i] || strings.Contains(parts(), "base .. '"+h.keys[i-1]+"'")
				assert.True(t, named, "KEYS[%d] %s is declared and not used", i, h.keys[i-1])
			}
			most, used = highest(argUse, body)
			assert.LessOrEqual(t, most, h.fixed, "an argument by number is a fixed one")
			for i := 1; i <= h.fixed; i++ {
				assert.True(t, used[i], "ARGV[%d] is declared and not used", i)
			}
			for i, l := range h.lists {
				if i == 0 {
					assert.Equal(t, h.fixed+1, l.first, "the list begins behind the fixed arguments")
				} else {
					assert.Zero(t, l.first, "only the first list has a place of its own")
				}
			}
			assert.NotContains(t, body, "loadstring")
		})
	}
}

// Every key that a script makes up is one that the layout describes.
func TestScriptKeysAreDescribed(t *testing.T) {
	t.Parallel()
	described := map[string]bool{}
	for line := range strings.SplitSeq(redisstore.Part("layout"), "\n") {
		if m := regexp.MustCompile(`^--   ([a-z]+)`).FindStringSubmatch(line); m != nil {
			described[m[1]] = true
		}
		for _, m := range regexp.MustCompile(`(history|counters|parked):?[A-Z ]`).FindAllStringSubmatch(line, -1) {
			described[m[1]] = true
		}
	}
	texts := parts()
	for _, s := range redisstore.ScriptFiles() {
		texts += s.Text
		for _, key := range s.Keys {
			assert.True(t, described[key], "%s: KEYS %s is not described in layout.lua", s.Name, key)
		}
	}
	for _, m := range keyName.FindAllStringSubmatch(texts, -1) {
		assert.True(t, described[m[1]], "the key %s is not described in layout.lua", m[1])
	}
}

// No script is made at run time: the text that is sent is one of the files.
func TestScriptsAreConstants(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(os.DirFS("."), "*.go")
	require.NoError(t, err)
	rooms, err := fs.Glob(os.DirFS("."), "internal/*/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, rooms)
	for _, file := range append(files, rooms...) {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		assert.NotContains(t, string(text), "NewScript", file)
		assert.NotContains(t, string(text), ".Eval(", file)
	}
}

// spy sees every command; it can lose answers.
type spy struct {
	mu    sync.Mutex
	cmds  [][]any
	lose  func(name string) bool // the command runs, and its answer is lost
	names map[string]string      // sha -> script
}

func newSpy() *spy {
	s := &spy{names: map[string]string{}}
	for _, f := range redisstore.ScriptFiles() {
		s.names[f.SHA] = f.Name
	}
	return s
}

func (*spy) DialHook(next redis.DialHook) redis.DialHook { return next }

func (s *spy) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.see(cmd)
		err := next(ctx, cmd)
		if s.loses(cmd) {
			err = &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
			cmd.SetErr(err)
		}
		return err
	}
}

func (s *spy) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			s.see(cmd)
		}
		err := next(ctx, cmds)
		for _, cmd := range cmds {
			if s.loses(cmd) {
				err = &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
				cmd.SetErr(err)
			}
		}
		return err
	}
}

func (s *spy) see(cmd redis.Cmder) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cmds = append(s.cmds, cmd.Args())
}

// script is the name of the script that a command runs; empty for none.
func (s *spy) script(args []any) string {
	if len(args) > 1 && args[0] == "evalsha" {
		return s.names[fmt.Sprint(args[1])]
	}
	return ""
}

func (s *spy) loses(cmd redis.Cmder) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := s.script(cmd.Args())
	return name != "" && s.lose != nil && s.lose(name)
}

// Every call that the Go side makes has the keys and the number of arguments that the header of its script says.
func TestCallsMatchScriptHeaders(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: srv.URL, Partitions: 2})
	require.NoError(t, err)
	defer func() { _ = st.Close() }()
	sees := newSpy()
	st.AddHook(sees)
	wholeLife(t, st)
	require.NoError(t, srv.Client(t).Del(t.Context(), "duly:{"+redisstore.Tags(2)[0]+"}:processes").Err())
	_, err = redisstore.RepartitionWith(t.Context(), redisstore.Config{URL: srv.URL}, redisstore.Repartitioning{To: 4}, sees)
	require.NoError(t, err)

	files := map[string]redisstore.ScriptFile{}
	for _, f := range redisstore.ScriptFiles() {
		files[f.Name] = f
	}
	seen := map[string]bool{}
	for _, args := range sees.cmds {
		name := sees.script(args)
		if name == "" {
			continue
		}
		seen[name] = true
		h, _ := parseHeader(t, files[name].Text)
		require.Equal(t, strconv.Itoa(len(h.keys)), fmt.Sprint(args[2]), name)
		for i, key := range h.keys {
			require.Regexp(t, `^duly:\{[0-9.]+\}:(?:moving:\d+:)?`+key+`$`, args[3+i], name)
		}
		argv := args[3+len(h.keys):]
		if files[name].Told {
			argv = argv[:len(argv)-1]
		}
		rest := len(argv) - h.fixed
		switch {
		case len(h.lists) == 0:
			require.Zero(t, rest, name)
		case len(h.lists) == 1:
			require.Positive(t, rest, name)
			require.Zero(t, rest%h.lists[0].stride, name)
		default: // the last fixed arguments say how long all lists but the last one are
			last := len(h.lists) - 1
			for i, l := range h.lists[:last] {
				said := argv[h.fixed-last+i]
				if text, ok := said.(*string); ok {
					said = *text
				}
				n, err := strconv.Atoi(fmt.Sprint(said))
				require.NoError(t, err)
				rest -= n * l.stride
			}
			require.GreaterOrEqual(t, rest, 0, name)
			require.Zero(t, rest%h.lists[last].stride, name)
		}
	}
	for name := range files {
		assert.True(t, seen[name], "the script %s was never called", name)
	}
}

// plainLife is what the plain scripts can do: one task an agent, claimed by nobody in particular.
func plainLife(t *testing.T, st *redisstore.Store) {
	t.Helper()
	_, err := st.Submit(t.Context(), []store.Submission{sub("plain", "1")})
	require.NoError(t, err)
	for i := range st.Partitions() {
		requests := []store.ClaimRequest{{Partition: i, Nonce: fmt.Sprintf("plain%011d", i), Kinds: []string{"k"}, Limit: 1, Lease: time.Minute}}
		claims, err := st.Claim(t.Context(), requests)
		require.NoError(t, err)
		for _, c := range claims {
			settle(t, st, store.VerbComplete, c.Tasks...)
		}
	}
}

// started is a task that starts as it is submitted.
func started(t *testing.T, st *redisstore.Store) {
	t.Helper()
	s := sub("started", "1")
	r := store.ClaimRequest{
		Partition: store.PartitionOf(s.Agent, st.Partitions()), Nonce: "started000000000", Kinds: []string{s.Kind}, Limit: 1, Lease: time.Minute, New: &s,
	}
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{r})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 1)
	settle(t, st, store.VerbComplete, claims[0].Tasks...)
}

// wholeLife calls every verb of a store.
func wholeLife(t *testing.T, st *redisstore.Store) {
	t.Helper()
	ctx := t.Context()
	plainLife(t, st)
	started(t, st)
	sub := func(agent, id string) store.Submission {
		return store.Submission{Agent: agent, ID: id, Kind: "k", Group: "g", Level: store.LevelLow, Body: []byte("b")}
	}
	_, err := st.Submit(ctx, []store.Submission{sub("a", "1"), sub("b", "1"), sub("b", "2"), sub("c", "1")})
	require.NoError(t, err)
	_, err = st.Submit(ctx, []store.Submission{sub("d", "1")})
	require.NoError(t, err)
	st.Sweep()
	looks, err := st.Look(ctx, []store.LookRequest{{Partition: 1, Kinds: []string{"k"}, Agents: []string{"a", "b"}}})
	require.NoError(t, err)
	require.Len(t, looks[0].AgentsDue, 2)
	_, err = st.Announce(ctx, "tag", []byte("info"), time.Minute)
	require.NoError(t, err)
	booked := alarm.Booking{At: moment.Of(time.Now().Add(time.Hour)), Tag: "tag", For: time.Minute}
	_, err = st.Book(ctx, booked)
	require.NoError(t, err)
	require.NoError(t, st.Confirm(ctx, booked))
	_, err = st.Follow(ctx, feed.Follow{Limit: 1, For: time.Minute})
	require.NoError(t, err)
	_, err = st.Publish(ctx, 0, [][]byte{[]byte("event")})
	require.NoError(t, err)
	events, err := st.Follow(ctx, feed.Follow{After: "0-0", Limit: 1, For: time.Minute})
	require.NoError(t, err)
	require.NotEmpty(t, events.Items)
	_, err = st.Profile(ctx, []store.ProfileChange{{Agent: "profiled", Now: []byte("profile")}})
	require.NoError(t, err)
	_, err = st.Profiles(ctx, store.PageOf{Limit: 10})
	require.NoError(t, err)
	_, err = st.Replan(ctx, []store.Replan{{Agent: "a", ID: "none"}})
	require.NoError(t, err)
	_, err = st.Budgets(ctx)
	require.NoError(t, err)
	_, err = st.Stamp(ctx, "stamp", bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "k"}})
	require.NoError(t, err)
	_, err = st.Forget(ctx, store.Remains{Agent: "profiled", Groups: []string{"g"}})
	require.NoError(t, err)
	_, err = st.Signal(ctx, []store.Signal{{Agent: "a", Key: "k", Keep: time.Minute}})
	require.NoError(t, err)
	require.NoError(t, st.Tally(ctx, window.Tally{Process: "p", Seq: 1, Kinds: []window.Kind{{Kind: "k", Runs: 1}}}))
	_, _, err = st.Window(ctx, 2)
	require.NoError(t, err)
	for _, state := range []message.State{message.Begun, message.Dropped, message.Done} {
		_, err := st.Receive(ctx, message.Receipt{Message: "m", By: "0123456789abcdef", Content: "c", State: state, For: time.Minute})
		require.NoError(t, err)
	}
	var claimed []store.Claimed
	for p := range 2 {
		claims, err := st.Claim(ctx, []store.ClaimRequest{{
			Partition: p, Nonce: fmt.Sprintf("life%012d", p), Kinds: []string{"k"}, Leave: []string{"l"}, Limit: 50,
			Lease: time.Minute, Agents: []string{"a", "b", "c", "d"},
		}})
		require.NoError(t, err)
		claimed = append(claimed, claims[0].Tasks...)
	}
	require.Len(t, claimed, 5)
	var runs []store.Settlement
	for i, c := range claimed {
		held, err := st.Extend(ctx, []store.Extension{{
			Partition: c.Partition, Fence: c.Fence, Lease: time.Minute,
			Progress: []store.Progress{{Run: c.Run, State: []byte("s"), Used: []bound.Used{{Unit: "tokens", Amount: 1}}}},
		}})
		require.NoError(t, err)
		require.True(t, held[0].Held)
		require.NoError(t, held[0].Err)
		back, err := st.Extend(ctx, []store.Extension{{Partition: c.Partition, Fence: c.Fence, Lease: time.Minute, Nonce: "back-0123456789a", Back: []store.Run{c.Run}}})
		require.NoError(t, err)
		require.Empty(t, back[0].Back, "it is not lost")
		verbs := []store.Verb{store.VerbComplete, store.VerbFail, store.VerbAgain}
		runs = append(runs, store.Settlement{
			Run: c.Run, Verb: verbs[i%3], Record: []byte("r"), State: []byte("s"), Group: "g", Kind: "k",
			Tally: &store.RunStat{Kind: "k", Failed: i == 1},
		})
	}
	settled, err := st.Settle(ctx, runs)
	require.NoError(t, err)
	for _, s := range settled {
		require.NoError(t, s.Err)
	}
	effects, err := st.Replay(ctx, []store.Replay{replay(sub(claimed[1].Agent, claimed[1].ID))})
	require.NoError(t, err)
	require.Equal(t, store.EffectDone, effects[0].Code)
	for _, place := range []store.Place{store.PlaceFailed, store.PlaceRunning, store.PlaceOverdue, store.PlaceAwaiting} {
		_, err := st.Find(ctx, store.Find{Place: place, Limit: 10})
		require.NoError(t, err)
	}
	page, err := st.List(ctx, store.List{Agent: "b", Limit: 10})
	require.NoError(t, err)
	require.Len(t, page.Tasks, 2)
	_, err = st.Holds(ctx, store.PageOf{Limit: 10})
	require.NoError(t, err)
	_, tasks := audited(t, st, true)
	assert.NotZero(t, tasks)
	operatedOn(t, st)
	_, err = st.Stats(ctx)
	require.NoError(t, err)
}

// operatedOn goes through what an operator can do.
func operatedOn(t *testing.T, st *redisstore.Store) {
	t.Helper()
	_, err := st.Touch(t.Context(), []store.Touch{{Agent: "a", ID: "touched", Kind: "k", Level: store.LevelLow}})
	require.NoError(t, err)
	one, others := store.Target{Agent: "a", ID: "touched"}, store.Target{Kind: "other"}
	done := func(effects []store.Effect, err error) {
		require.NoError(t, err)
		for _, e := range effects {
			require.Equal(t, store.EffectDone, e.Code)
		}
	}
	done(st.Hold(t.Context(), []store.Hold{
		{Target: one, Until: moment.When{After: time.Minute}}, {Target: others, Until: moment.When{After: time.Minute}},
	}))
	done(st.Hold(t.Context(), []store.Hold{{Target: others, Prolong: true}}))
	_, err = st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "other"}}, Lift: true}})
	require.NoError(t, err)
	spans := bound.LimitChange{Limit: bound.Limit{About: bound.LimitTarget{Key: "spans"}, Concurrency: 1}}
	done(st.Limit(t.Context(), []bound.LimitChange{spans}))
	waits := sub("e", "1")
	waits.Key = "spans"
	_, err = st.Submit(t.Context(), []store.Submission{waits})
	require.NoError(t, err)
	c, err := st.Claim(t.Context(), []store.ClaimRequest{{
		Partition: store.PartitionOf("e", st.Partitions()), Nonce: "nonce-of-a-limit", Kinds: []string{"k"}, Limit: 1, Lease: time.Minute,
		Agents: []string{"e"},
	}})
	require.NoError(t, err)
	require.Len(t, c[0].Tasks, 1)
	settle(t, st, store.VerbComplete, c[0].Tasks...)
	spans.Lift = true
	done(st.Limit(t.Context(), []bound.LimitChange{spans}))
	done(st.RunNow(t.Context(), []store.RunNow{{Agent: "a", ID: "touched"}}))
	done(st.Unhold(t.Context(), []store.Target{one, others}))
	done(st.Delete(t.Context(), []store.Deletion{{Agent: "a", ID: "touched"}}))
	_, err = st.Get(t.Context(), store.Get{Agent: "b", IDs: []string{"1", "2"}, Explain: true})
	require.NoError(t, err)
	page, err := st.Agents(t.Context(), store.PageOf{Limit: 10})
	require.NoError(t, err)
	require.NotEmpty(t, page.Agents)
}
