package redisstore_test

// The plain scripts beside the full ones: which of them a call sends, and that an odd answer has changed nothing.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// sent are the scripts that some calls have sent, in their order.
func (s *spy) sent(calls func()) []string {
	s.mu.Lock()
	from := len(s.cmds)
	s.mu.Unlock()
	calls()
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for _, args := range s.cmds[from:] {
		if name := s.script(args); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// Where a plain script is not enough, the full one carries out the same call, and the next one of that verb does without the plain one.
func TestAnOddAnswerIsFollowedByTheFullScript(t *testing.T) {
	t.Parallel()
	st := open(t, redisstore.Config{URL: redistest.Start(t).URL, Partitions: 1})
	sees := newSpy()
	st.AddHook(sees)
	submits := func(s store.Submission, created bool) func() {
		return func() {
			placed, err := st.Submit(t.Context(), []store.Submission{s})
			require.NoError(t, err)
			assert.Equal(t, created, placed[0].Created)
		}
	}
	plainLife(t, st) // every script is loaded now that the first calls send
	submits(sub("a", "1"), true)()

	// A task that exists, then whatever comes next, and then the plain one is tried again.
	assert.Equal(t, []string{"plainsubmit", "submit"}, sees.sent(submits(sub("a", "1"), false)))
	assert.Equal(t, []string{"submit"}, sees.sent(submits(sub("b", "1"), true)))
	assert.Equal(t, []string{"plainsubmit"}, sees.sent(submits(sub("c", "1"), true)))

	// A hold of one of three agents: the claim that meets it parks its task and takes the others.
	hold(t, st, store.Target{Agent: "b"}, moment.When{After: time.Hour})
	var c store.Claim
	assert.Equal(t, []string{"plainclaim", "claim"}, sees.sent(func() { c = claim(t, st, "n1", 10) }))
	assert.Equal(t, 1, c.Parked)
	require.Len(t, c.Tasks, 2)

	// A run that was told to end: its settlement says so, and that of the other is the full one too.
	page, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
	require.NoError(t, err)
	cancel := store.Cancellation{Agent: "a", ID: "1", Version: page.Tasks[0].Version, Order: []byte("o"), Record: []byte("r")}
	effects, err := st.Cancel(t.Context(), []store.Cancellation{cancel})
	require.NoError(t, err)
	require.Equal(t, store.EffectOrdered, effects[0].Code)
	run := store.Settlement{Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbComplete, Record: []byte("r")}
	require.Equal(t, "a", run.Agent)
	assert.Equal(t, []string{"plainsettle", "settle"}, sees.sent(func() {
		settled, err := st.Settle(t.Context(), []store.Settlement{run})
		require.NoError(t, err)
		var ending *store.EndingError
		require.ErrorAs(t, settled[0].Err, &ending)
	}))
	assert.Equal(t, []string{"settle"}, sees.sent(func() { settle(t, st, store.VerbComplete, c.Tasks[1]) }))
}

// A claim that finds nothing changes nothing: neither replicas nor an append-only file hear of it, however often daemons look.
func TestAClaimThatFindsNothingWritesNothing(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st, c := open(t, redisstore.Config{URL: srv.URL, Partitions: 1}), srv.Client(t)
	sees := newSpy()
	st.AddHook(sees)
	changes := func() string {
		return regexp.MustCompile(`rdb_changes_since_last_save:\d+`).FindString(c.Info(t.Context(), "persistence").Val())
	}
	vain := func(nonce string) func() { return func() { assert.Empty(t, claim(t, st, nonce, 10).Tasks) } }
	for i, waits := range []func(){
		func() {}, // an empty partition
		func() {
			later := sub("a", "1")
			later.Due = moment.When{After: time.Hour}
			_, err := st.Submit(t.Context(), []store.Submission{later})
			require.NoError(t, err)
		},
		func() { hold(t, st, store.Target{Kind: "other"}, moment.When{}) },
	} {
		waits()
		vain(fmt.Sprint("first", i))() // what others have left behind may be put right
		before := changes()
		assert.Equal(t, []string{"plainclaim"}, sees.sent(vain(fmt.Sprint("vain", i))))
		assert.Equal(t, before, changes(), "%d", i)
	}
}

// What is told to be due and is not is put right by the claim that finds so, or daemons would come again and again.
func TestAClaimThatFindsNothingTellsWhatIsNext(t *testing.T) {
	t.Parallel()
	w := newWorst(t)
	later := sub("a", "1")
	later.Due.At = moment.Of(time.Now().Add(time.Hour).Truncate(time.Millisecond))
	_, err := w.st.Submit(t.Context(), []store.Submission{later})
	require.NoError(t, err)
	w.do("SET", part+"due", w.now-1000)
	looks := func() moment.Millis {
		l, err := w.st.Look(t.Context(), []store.LookRequest{{}})
		require.NoError(t, err)
		return l[0].NextDue
	}
	require.Less(t, looks(), moment.Of(time.Now()))
	assert.Empty(t, claim(t, w.st, "vain", 10).Tasks)
	assert.Equal(t, later.Due.At, looks())
}

// A pause of a kind, a key, an agent or a task is nothing to a claim whose tasks it is not about.
func TestAPauseOfOthersLeavesClaimsPlain(t *testing.T) {
	t.Parallel()
	st := open(t, redisstore.Config{URL: redistest.Start(t).URL, Partitions: 1})
	sees := newSpy()
	st.AddHook(sees)
	plainLife(t, st)
	for _, target := range []store.Target{{Kind: "other"}, {Key: "other"}, {Agent: "other"}, {Agent: "another", ID: "1"}} {
		if target.ID != "" {
			_, err := st.Submit(t.Context(), []store.Submission{{Agent: target.Agent, ID: target.ID, Kind: "k", Level: store.LevelLow, Due: moment.When{After: time.Hour}}})
			require.NoError(t, err)
		}
		hold(t, st, target, moment.When{})
	}
	submit := func(kind string) {
		s := sub("a", kind)
		s.Kind = kind
		_, err := st.Submit(t.Context(), []store.Submission{s})
		require.NoError(t, err)
	}
	request := func(nonce string) store.ClaimRequest {
		return store.ClaimRequest{Nonce: nonce + strings.Repeat(".", store.NonceLen-len(nonce)), Limit: 10, Kinds: []string{"k", "other"}, Lease: time.Minute}
	}
	submit("k")
	var claims []store.Claim
	take := func(nonce string) func() {
		return func() {
			var err error
			claims, err = st.Claim(t.Context(), []store.ClaimRequest{request(nonce)})
			require.NoError(t, err)
		}
	}
	assert.Equal(t, []string{"plainclaim"}, sees.sent(take("n1")))
	require.Len(t, claims[0].Tasks, 1)
	keyed := sub("c", "1")
	keyed.Key = "other"
	for i, own := range []func(){func() { submit("other") }, func() {
		_, err := st.Submit(t.Context(), []store.Submission{keyed})
		require.NoError(t, err)
	}} {
		own()
		assert.Equal(t, []string{"plainclaim", "claim"}, sees.sent(take(fmt.Sprint("n2", i))), "it is about this one")
		assert.Empty(t, claims[0].Tasks)
		assert.Equal(t, 1, claims[0].Parked)
		for k := range 4 { // after odd answers the full script is sent for a while
			take(fmt.Sprint("n3", i, k))()
		}
	}
	s := sub("b", "1")
	_, err := st.Submit(t.Context(), []store.Submission{s})
	require.NoError(t, err)
	assert.Equal(t, []string{"plainclaim"}, sees.sent(take("n4")), "it is parked, and in nobody's way")
	require.Len(t, claims[0].Tasks, 1)
	assert.Equal(t, "b", claims[0].Tasks[0].Agent)
}

// Claims under a limit or a budget are plain while there is room for all that they take; the one that there is none for is the full script's. So are
// their settlements, until somebody waits for what they give back.
func TestALimitWithRoomLeavesClaimsPlain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(st *redisstore.Store, kind string) error{
		"limit": func(st *redisstore.Store, of string) error {
			kind, key, _ := strings.Cut(of, "|")
			_, err := st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: kind, Key: key}, Concurrency: 1}}})
			return err
		},
		"budget": func(st *redisstore.Store, of string) error {
			kind, key, _ := strings.Cut(of, "|")
			about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: kind, Key: key}, Unit: "runs", Per: bound.PerHour}
			_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{About: about, Amount: 2_000_000, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}}}})
			return err
		},
	} {
		for of, room := range map[string]bool{"other": true, "k": false, "": false, "|key": true, "|own|": false, "|own*": false} {
			st := open(t, redisstore.Config{URL: redistest.Start(t).URL, Partitions: 1})
			sees := newSpy()
			st.AddHook(sees)
			plainLife(t, st)
			require.NoError(t, set(st, of))
			for i := range 4 { // what a new limit lets go is looked for once
				claim(t, st, fmt.Sprint("n0", i), 10)
			}
			submit := func(id string) {
				keyed := sub("a", id)
				keyed.Key = "own|"
				_, err := st.Submit(t.Context(), []store.Submission{keyed})
				require.NoError(t, err)
			}
			submit("1")
			var c store.Claim
			assert.Equal(t, []string{"plainclaim"}, sees.sent(func() { c = claim(t, st, "n1", 10) }), "%s of %q", name, of)
			require.Len(t, c.Tasks, 1)
			submit("2")
			sent := sees.sent(func() { claim(t, st, "n2", 10) })
			assert.Equal(t, room, !slices.Contains(sent, "claim"), "%s of %q: %v", name, of, sent)
			want := []string{"plainsettle"}
			if name == "limit" && !room {
				want = append(want, "settle")
			}
			assert.Equal(t, want, sees.sent(func() { settle(t, st, store.VerbComplete, c.Tasks[0]) }), "%s of %q", name, of)
		}
	}
}

// What an agent has set for itself is looked at by claims of its own tasks alone, and is the full script's where it has no room.
func TestBoundsOfOthersLeaveClaimsPlain(t *testing.T) {
	t.Parallel()
	for agent, plain := range map[string]bool{"other": true, "a": false} {
		st := open(t, redisstore.Config{URL: redistest.Start(t).URL, Partitions: 1})
		sees := newSpy()
		st.AddHook(sees)
		plainLife(t, st)
		_, err := st.Profile(t.Context(), []store.ProfileChange{{Agent: agent, Now: []byte("p"), Limits: []bound.Limit{{About: bound.LimitTarget{Agent: agent}, Concurrency: 1}}}})
		require.NoError(t, err)
		for i := range 4 { // what a new limit lets go is looked for once
			claim(t, st, fmt.Sprint("n0", i), 10)
		}
		for i, want := range []bool{true, plain} { // of its own there is room for one
			_, err = st.Submit(t.Context(), []store.Submission{sub("a", fmt.Sprint(i)), sub("b", fmt.Sprint(i))})
			require.NoError(t, err)
			var c store.Claim
			sent := sees.sent(func() { c = claim(t, st, fmt.Sprint("n1", i), 10) })
			assert.Equal(t, want, !slices.Contains(sent, "claim"), "bounds of %q: %v", agent, sent)
			if want {
				assert.Len(t, c.Tasks, 2)
			}
		}
	}
}

// writing is a command of a plain script that changes something.
var writing = regexp.MustCompile(`redis\.call\(\s*'(?:H|Z|L|R)?(?:SET|ADD|REM|DEL|INCRBY|PUSH|POP|TRIM)'`)

// A plain script that answers odd has written nothing: the full one follows, and would find half of what the plain one did.
func TestOddAnswersComeBeforeAllWrites(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, f := range redisstore.ScriptFiles() {
		if !strings.HasPrefix(f.Name, "plain") {
			continue
		}
		seen++
		text := redisstore.Packed()[f.Name].Text // as it is sent, without comments
		first := writing.FindStringIndex(text)
		require.NotNil(t, first, f.Name)
		assert.Contains(t, text[:first[0]], "return ODD", f.Name)
		assert.NotContains(t, text[first[0]:], "return ODD", f.Name)
	}
	assert.Equal(t, 4, seen)
}

// An agent whose place in the agenda has passed, while nothing of it is due, gets its right one: nobody claims in vain a second time.
func TestAPlaceOfThePastIsPutRight(t *testing.T) {
	t.Parallel()
	w := newWorst(t)
	due := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	var subs []store.Submission
	for i := range 300 { // more than stand in the agenda by themselves
		s := sub("many", fmt.Sprint(i))
		s.Due.At = moment.Of(due)
		subs = append(subs, s)
	}
	_, err := w.st.Submit(t.Context(), subs)
	require.NoError(t, err)
	w.do("ZADD", part+"agenda", w.now-1000, "many")
	for range 2 {
		c := claim(t, w.st, fmt.Sprint("stale", w.seq), 10)
		w.seq++
		assert.Empty(t, c.Tasks)
		assert.Equal(t, moment.Of(due), c.NextDue)
	}
}

// What has a tenant and is in no line of one, as another version of duly has put it into the agenda, comes to its turn by age.
func TestWhatALaneMissesComesByAge(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1})
	for i := range 100 {
		agent := fmt.Sprint("many", i)
		_, err := st.Profile(t.Context(), []store.ProfileChange{{Agent: agent, Now: []byte("p"), Tenant: "big"}})
		require.NoError(t, err)
		_, err = st.Submit(t.Context(), []store.Submission{sub(agent, "1")})
		require.NoError(t, err)
	}
	_, err := st.Submit(t.Context(), []store.Submission{sub("another", "1")})
	require.NoError(t, err)
	clock.Advance(time.Millisecond)
	claimed := func(n int) string { return claim(t, st, fmt.Sprintf("n%d", n), 1).Tasks[0].Agent }
	require.Equal(t, "another", claimed(0), "agents without a tenant come first by name")
	c := srv.Client(t)
	_, err = st.Submit(t.Context(), []store.Submission{sub("missed", "1")})
	require.NoError(t, err)
	clock.Advance(time.Millisecond)
	require.Equal(t, "many0", claimed(1))
	lanes := st.Prefix() + "{0}:lane:"
	require.EqualValues(t, 1, c.ZRem(t.Context(), lanes, "missed").Val())
	for i := range 75 {
		clock.Advance(time.Millisecond)
		if claimed(2+i) == "missed" {
			return
		}
		if i == 40 { // it is the oldest by now
			c.ZAdd(t.Context(), st.Prefix()+"{0}:agenda", redis.Z{Score: 1, Member: "missed"})
		}
	}
	assert.Fail(t, "it has never come to its turn")
}

// However many buckets the runs of a call count in, it is carried out whole: a command of a script has room for some thousands of arguments.
func TestManyLimitsOfManyAgents(t *testing.T) {
	t.Parallel()
	const key, agents = "abcdefghijklmnopqrstuvwxyz0123", 100
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	var changes []bound.LimitChange
	for i := range key {
		for _, of := range []string{"", "k"} {
			about := bound.LimitTarget{Kind: of, Key: key[:i+1] + "*", Each: bound.EachAgent}
			changes = append(changes, bound.LimitChange{Limit: bound.Limit{About: about, Concurrency: 2}})
		}
	}
	_, err := st.Limit(t.Context(), changes)
	require.NoError(t, err)
	var tasks []store.Submission
	for i := range agents {
		agent := fmt.Sprint("agent", i)
		tasks = append(tasks, sub(agent, "1"))
		tasks[i].Key = key
		var own []bound.Limit
		for i := range key {
			own = append(own, bound.Limit{About: bound.LimitTarget{Agent: agent, Key: key[:i+1] + "*"}, Concurrency: 2})
		}
		_, err := st.Profile(t.Context(), []store.ProfileChange{{Agent: agent, Now: []byte("p"), Limits: own}})
		require.NoError(t, err)
	}
	_, err = st.Submit(t.Context(), tasks)
	require.NoError(t, err)
	var runs []store.Settlement
	for i := 0; len(runs) < agents; i++ {
		require.Less(t, i, 2*agents, "%d of %d", len(runs), agents)
		for _, c := range claim(t, st, fmt.Sprint("n", i), 50).Tasks {
			runs = append(runs, store.Settlement{Run: c.Run, Kind: "k", Verb: store.VerbComplete, Record: []byte("r")})
		}
	}
	settled, err := st.Settle(t.Context(), runs)
	require.NoError(t, err)
	for _, s := range settled {
		require.NoError(t, s.Err)
	}
	assert.Empty(t, flights(t, srv), "nothing counts any more")
	assert.Empty(t, claim(t, st, "last", 50).Tasks)
}

// flights are the runs that count in each bucket.
func flights(t *testing.T, srv *redistest.Server) map[string]string {
	t.Helper()
	c, all := srv.Client(t), map[string]string{}
	for _, key := range c.Keys(t.Context(), "*flight").Val() {
		maps.Copy(all, c.HGetAll(t.Context(), key).Val())
	}
	return all
}

// A task that is looked at, and not taken ahead of its time as it would use a budget up, counts in nothing.
func TestWhatIsNotTakenAheadIsNotCounted(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
	_, err := st.Limit(t.Context(), []bound.LimitChange{
		{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 9}},
		{Limit: bound.Limit{About: bound.LimitTarget{Kind: "later"}, Concurrency: 9}},
	})
	require.NoError(t, err)
	about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Kind: "later"}, Unit: bound.UnitRuns, Per: bound.PerDay}
	_, err = st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{About: about, Amount: bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}}}})
	require.NoError(t, err)
	for i := range 4 { // what a new limit lets go is looked for once
		claim(t, st, fmt.Sprint("n0", i), 10)
	}
	later := sub("b", "1")
	later.Kind, later.Due = "later", moment.When{After: 20 * time.Second}
	_, err = st.Submit(t.Context(), []store.Submission{sub("a", "1"), later})
	require.NoError(t, err)
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{{
		Nonce: strings.Repeat("a", store.NonceLen), Limit: 10, Kinds: []string{"k", "later"}, Lease: time.Minute,
		Ahead: time.Minute, AheadMost: 10, AheadLease: time.Minute,
	}})
	require.NoError(t, err)
	require.Len(t, claims[0].Tasks, 1)
	assert.Equal(t, []string{"1"}, slices.Collect(maps.Values(flights(t, srv))))
}

// Whatever a task is called, its run is counted and given back where each task counts by itself.
func TestABudgetOfATaskWithAnyID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"a|b", "a$b", "a$tokens$d|x", "|", "$", "a|$tokens$d"} {
		srv := redistest.Start(t)
		st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
		about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachTask}, Unit: "tokens", Per: bound.PerDay}
		_, err := st.Budget(t.Context(), []bound.BudgetChange{{Budget: bound.Budget{About: about, Amount: 9 * bound.AmountOne, Then: bound.ThenHold, Zone: "UTC", Clock: bound.Clock{{}}}}})
		require.NoError(t, err)
		for round, want := range []int{1, 1, 0} { // 5 of 9, then as much again
			if round == 0 {
				_, err = st.Submit(t.Context(), []store.Submission{sub("a", id)})
				require.NoError(t, err)
			}
			c := claim(t, st, string(rune('a'+round)), 10)
			require.Len(t, c.Tasks, want, "%q, round %d", id, round)
			for _, task := range c.Tasks {
				settled, err := st.Settle(t.Context(), []store.Settlement{{
					Run: task.Run, Kind: "k", Verb: store.VerbAgain, State: []byte("s"), Spent: &store.Spent{Used: []bound.Used{{Unit: "tokens", Amount: 5 * bound.AmountOne}}},
				}})
				require.NoError(t, err, "%q", id)
				require.NoError(t, settled[0].Err)
			}
			require.Empty(t, flights(t, srv), "%q", id)
		}
	}
}

// A task that is long is not held with its agent, which each step that looks at the agent would read, nor is it copied for others of the agent:
// however it came to be stored. One that is short is.
func TestALongTaskIsNotHeldWithItsAgent(t *testing.T) {
	t.Parallel()
	for name, few := range map[string]bool{"as tasks are laid out": true, "as an earlier version laid them out": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := redistest.Start(t)
			st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1})
			if !few {
				st.Few(1)
			}
			long := func(agent string) store.Submission {
				s := sub(agent, "first")
				s.Body = []byte(strings.Repeat("long ", 210))
				return s
			}
			short := sub("short", "first")
			full, started := long("full"), long("started")
			full.State = []byte("such a task takes the full script")
			submitted(t, st, long("plain"))
			submitted(t, st, full, short)
			r := store.ClaimRequest{Nonce: "startedatonce000", Kinds: []string{started.Kind}, Limit: 1, Lease: time.Minute, New: &started}
			_, claims, err := st.Turn(t.Context(), nil, []store.ClaimRequest{r})
			require.NoError(t, err)
			require.Len(t, claims[0].Tasks, 1)
			assert.Equal(t, started.Body, claims[0].Tasks[0].Body)
			for agent, held := range map[string]bool{"plain": !few, "full": !few, "started": !few, "short": true} {
				value := srv.Client(t).HGet(t.Context(), part+"agents", agent).Val()
				assert.Equal(t, held, strings.HasPrefix(value, "S"), "%s: %.80q", agent, value)
				assert.Equal(t, held && agent != "short", len(value) > 1024, "%s: %.80q", agent, value)
			}

			// Others of the agent leave it as it is, it is claimed with its body, and nothing of it stays.
			for _, agent := range []string{"plain", "full", "started"} {
				submitted(t, st, sub(agent, "second"))
			}
			claimed := append(claims[0].Tasks, claim(t, st, "all", 10).Tasks...)
			require.Len(t, claimed, 7)
			for i := range claimed {
				if claimed[i].ID == "first" && claimed[i].Agent != "short" {
					assert.Equal(t, started.Body, claimed[i].Body, claimed[i].Agent)
				}
			}
			settle(t, st, store.VerbComplete, claimed...)
			assert.Zero(t, srv.Client(t).Exists(t.Context(), part+"agents", part+"tasks", part+"agenda").Val())
		})
	}
}
