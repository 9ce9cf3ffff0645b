package redisstore_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// losing is a store that has lost no answer yet, and another client of the same Redis.
type losing struct {
	*testing.T

	st, other *redisstore.Store
	srv       *redistest.Server
	sees      *spy
	lost      int
}

// loses makes the next answers of a script get lost; meanwhile, if not nil, happens behind the first of them.
func (l *losing) loses(script string, times int, meanwhile func()) {
	l.sees.lose = func(name string) bool {
		if strings.TrimPrefix(name, "plain") != script || times == 0 {
			return false
		}
		times--
		l.lost++
		if meanwhile != nil {
			meanwhile()
			meanwhile = nil
		}
		return true
	}
}

func (l *losing) submit(st *redisstore.Store, s store.Submission) store.Submitted {
	l.Helper()
	placed, err := st.Submit(l.Context(), []store.Submission{s})
	require.NoError(l, err)
	return placed[0]
}

// effect is what the one request of a call did.
func (l *losing) effect(effects []store.Effect, err error) store.Effect {
	l.Helper()
	require.NoError(l, err)
	return effects[0]
}

func (l *losing) touch(t store.Touch) store.Touched {
	l.Helper()
	touched, err := l.st.Touch(l.Context(), []store.Touch{t})
	require.NoError(l, err)
	return touched[0]
}

// task is a/1 as it is.
func (l *losing) task() store.Stored {
	l.Helper()
	page, err := l.other.Get(l.Context(), store.Get{Agent: "a", IDs: []string{"1"}})
	require.NoError(l, err)
	return page.Tasks[0]
}

func (l *losing) claim(st *redisstore.Store, nonce string) store.Claim {
	l.Helper()
	return claim(l.T, st, nonce, 10)
}

func (l *losing) ends(st *redisstore.Store, verb store.Verb, c store.Claim) {
	l.Helper()
	settle(l.T, st, verb, c.Tasks...)
}

// cancel cancels the task as it is.
func (l *losing) cancel() store.EffectCode {
	l.Helper()
	c := store.Cancellation{Agent: "a", ID: "1", Version: l.task().Version, Record: []byte("r"), Order: []byte("o")}
	return l.effect(l.st.Cancel(l.Context(), []store.Cancellation{c})).Code
}

// lostAnswers are calls of every script that writes, with what the caller must be told although the answer was lost.
var lostAnswers = []struct {
	script, name string
	test         func(l *losing, times int)
}{
	{"submit", "a new task", func(l *losing, times int) {
		l.loses("submit", times, nil)
		assert.True(l, l.submit(l.st, sub("a", "1")).Created)
	}},
	{"submit", "the last task that its root has room for", func(l *losing, times int) {
		s := sub("a", "1")
		s.Root = &breaker.Root{Agent: "r", ID: "1", Most: 2}
		l.loses("submit", times, nil)
		assert.True(l, l.submit(l.st, s).Created)
		assert.False(l, l.submit(l.st, s).Created, "it exists")
		s.ID = "2"
		assert.True(l, l.submit(l.st, s).Created, "the first has counted once")
		s.ID = "3"
		_, err := l.st.Submit(l.Context(), []store.Submission{s})
		require.ErrorAs(l, err, new(*breaker.Error))
	}},
	{"submit", "a new task that ends meanwhile", func(l *losing, times int) {
		l.loses("submit", times, func() { l.ends(l.other, store.VerbComplete, l.claim(l.other, "other")) })
		assert.True(l, l.submit(l.st, sub("a", "1")).Created)
	}},
	{"submit", "fail on conflict", func(l *losing, times int) {
		s := sub("a", "1")
		s.Conflict = store.ConflictFail
		l.loses("submit", times, nil)
		assert.True(l, l.submit(l.st, s).Created)
		_, err := l.st.Submit(l.Context(), []store.Submission{s})
		assert.Equal(l, core.CodeConflict, core.CodeOf(err), "another call conflicts")
	}},
	{"submit", "several of several partitions", func(l *losing, times int) {
		var subs []store.Submission
		for i := range 10 {
			subs = append(subs, sub(fmt.Sprint("agent", i), "1"))
			subs[i].Conflict = store.ConflictFail
		}
		calls := 0
		l.sees.lose = func(name string) bool { // of the calls that write, which come behind those that check
			calls++
			if strings.HasSuffix(name, "submit") && calls > 2 && times > 0 {
				times, l.lost = times-1, l.lost+1
				return true
			}
			return false
		}
		placed, err := l.st.Submit(l.Context(), subs)
		require.NoError(l, err)
		for _, p := range placed {
			assert.True(l, p.Created)
		}
	}},
	{"submit", "replace", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		s := sub("a", "1")
		s.Conflict, s.Version, s.Body, s.Due.After = store.ConflictReplace, l.task().Version, []byte("new"), time.Hour
		l.loses("submit", times, nil)
		placed := l.submit(l.st, s)
		assert.True(l, placed.Replaced)
		assert.Equal(l, l.task().Due, placed.Due)
	}},
	{"touch", "a new run", func(l *losing, times int) {
		l.loses("touch", times, nil)
		touched := l.touch(touching(sub("a", "1")))
		assert.True(l, touched.Booked)
		assert.Equal(l, store.ReasonActivity, touched.Reason)
		assert.Equal(l, store.ReasonWaiting, l.touch(touching(sub("a", "1"))).Reason, "another touch")
	}},
	{"start", "a task with its claim", func(l *losing, times int) {
		s := sub("a", "1")
		r := store.ClaimRequest{Nonce: "starts0000000000", Kinds: []string{s.Kind}, Limit: 1, Lease: time.Minute, New: &s}
		l.sees.lose = func(name string) bool { // the script that is sent instead of a repetition, too
			lost := (name == "plainstart" || name == "submit") && times > 0
			if lost {
				times, l.lost = times-1, l.lost+1
			}
			return lost
		}
		claims, err := l.st.Claim(l.Context(), []store.ClaimRequest{r})
		require.NoError(l, err)
		assert.True(l, claims[0].Submitted.Created)
		assert.Len(l, claims[0].Tasks, 1, "the claim that was made is found by its nonce")
		l.ends(l.st, store.VerbComplete, claims[0])
	}},
	{"claim", "what is due", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.loses("claim", times, nil)
		c := l.claim(l.st, "n")
		require.Len(l, c.Tasks, 1)
		l.ends(l.st, store.VerbComplete, c)
		assert.Equal(l, store.StatusCompleted, l.task().Status)
	}},
	{"claim", "what is replaced meanwhile", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.loses("claim", times, func() {
			s := sub("a", "1")
			s.Conflict, s.Version, s.Body = store.ConflictReplace, l.task().Version, []byte("new")
			assert.True(l, l.submit(l.other, s).Replaced)
		})
		assert.Empty(l, l.claim(l.st, "n").Tasks, "the old one never ran, and the new one is not this claim's")
		c := l.claim(l.st, "m")
		require.Len(l, c.Tasks, 1)
		assert.Equal(l, "new", string(c.Tasks[0].Body))
		l.ends(l.st, store.VerbComplete, c)
		assert.Empty(l, l.claim(l.st, "o").Tasks, "the new one runs once")
	}},
	{"settle", "a completed run", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.st, "n")
		l.loses("settle", times, nil)
		l.ends(l.st, store.VerbComplete, c)
		assert.Equal(l, store.StatusCompleted, l.task().Status)
	}},
	{"extend", "a lease", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.st, "n")
		l.loses("extend", times, nil)
		held, err := l.st.Extend(l.Context(), []store.Extension{{Fence: c.Fence, Lease: time.Minute}})
		require.NoError(l, err)
		assert.True(l, held[0].Held)
	}},
	{"charge", "what a run has used", func(l *losing, times int) {
		about := bound.BudgetTarget{LimitTarget: bound.LimitTarget{Each: bound.EachAgent}, Unit: "tokens", Per: bound.PerDay}
		l.effect(l.st.Budget(l.Context(), []bound.BudgetChange{{Budget: bound.Budget{About: about, Amount: bound.AmountOf(100), Zone: "UTC", Clock: bound.Clock{{}}, Then: bound.ThenHold}}}))
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.st, "n")
		l.loses("charge", times, nil)
		progress := []store.Progress{{Run: c.Tasks[0].Run, State: []byte("s"), Used: []bound.Used{{Unit: "tokens", Amount: bound.AmountOf(4)}}}}
		held, err := l.st.Extend(l.Context(), []store.Extension{{Fence: c.Fence, Lease: time.Minute, Progress: progress}})
		require.NoError(l, err)
		require.NoError(l, held[0].Err)
		all, err := l.st.Budgets(l.Context())
		require.NoError(l, err)
		assert.Equal(l, bound.AmountOf(4), all[0].Used, "it is charged once")
	}},
	{"back", "a run that its process takes back", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.st, "n")
		held, err := l.st.Extend(l.Context(), []store.Extension{{Fence: c.Fence, Lease: time.Millisecond}})
		require.NoError(l, err)
		require.True(l, held[0].Held)
		r := store.ClaimRequest{Nonce: "looks-0123456789", Kinds: []string{"other"}, Lease: time.Minute}
		require.Eventually(l, func() bool {
			claims, err := l.st.Claim(l.Context(), []store.ClaimRequest{r})
			return err == nil && claims[0].Recovered == 1
		}, 5*time.Second, time.Millisecond)
		l.loses("back", times, nil)
		e := store.Extension{Fence: c.Fence, Lease: time.Minute, Nonce: "back-0123456789a", Back: []store.Run{c.Tasks[0].Run}}
		back, err := l.st.Extend(l.Context(), []store.Extension{e})
		require.NoError(l, err)
		require.Len(l, back[0].Back, 1)
		c.Tasks[0].Run = back[0].Back[0]
		l.ends(l.st, store.VerbComplete, c)
		assert.Equal(l, store.StatusCompleted, l.task().Status)
	}},
	{"profile", "a new profile", func(l *losing, times int) {
		l.loses("profile", times, nil)
		change := []store.ProfileChange{{Agent: "a", Now: []byte("one")}}
		assert.Equal(l, store.EffectDone, l.effect(l.st.Profile(l.Context(), change)).Code)
		change[0].Now = []byte("two")
		assert.Equal(l, store.EffectChanged, l.effect(l.st.Profile(l.Context(), change)).Code, "another one")
	}},
	{"replan", "a waiting task", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		was := l.task()
		later := was.Due.Add(time.Hour)
		change := []store.Replan{{Agent: "a", ID: "1", Version: was.Version, Was: was.Due, Due: later}}
		l.loses("replan", times, nil)
		assert.Equal(l, store.EffectDone, l.effect(l.st.Replan(l.Context(), change)).Code)
		assert.Equal(l, later, l.task().Due)
	}},
	{"stamp", "a stamp", func(l *losing, times int) {
		l.loses("stamp", times, nil)
		kept, err := l.st.Stamp(l.Context(), "mine")
		require.NoError(l, err)
		assert.True(l, kept)
		known, err := l.other.Stamped(l.Context(), 0, "mine")
		require.NoError(l, err)
		assert.True(l, known)
	}},
	{"forget", "what an agent leaves", func(l *losing, times int) {
		l.loses("forget", times, nil)
		_, err := l.st.Forget(l.Context(), store.Remains{Agent: "a"})
		require.NoError(l, err)
	}},
	{"replay", "a dead task", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.ends(l.st, store.VerbFail, l.claim(l.st, "n"))
		l.loses("replay", times, nil)
		e := l.effect(l.st.Replay(l.Context(), []store.Replay{replay(sub("a", "1"))}))
		assert.Equal(l, store.EffectDone, e.Code)
		assert.Equal(l, l.task().Due, e.Due)
		assert.Equal(l, store.EffectNone, l.effect(l.st.Replay(l.Context(), []store.Replay{replay(sub("a", "1"))})).Code, "another one")
	}},
	{"order", "cancel", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.loses("order", times, nil)
		assert.Equal(l, store.EffectDone, l.cancel())
		assert.Equal(l, store.StatusCancelled, l.task().Status)
	}},
	{"order", "cancel of a run that ends meanwhile", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.other, "other")
		l.loses("order", times, func() { l.ends(l.other, store.VerbCancel, c) })
		assert.Equal(l, store.EffectOrdered, l.cancel())
	}},
	{"order", "delete, and a new task of the id", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.loses("order", times, func() { assert.True(l, l.submit(l.other, sub("a", "1")).Created) })
		assert.Equal(l, store.EffectDone, l.effect(l.st.Delete(l.Context(), []store.Deletion{deletion(sub("a", "1"))})).Code)
		assert.Equal(l, store.StatusWaiting, l.task().Status, "the new task is another client's")
	}},
	{"order", "run a task, which ends meanwhile", func(l *losing, times int) {
		s := sub("a", "1")
		s.Due.After = time.Hour
		l.submit(l.st, s)
		l.loses("order", times, func() { l.ends(l.other, store.VerbComplete, l.claim(l.other, "other")) })
		e := l.effect(l.st.RunNow(l.Context(), []store.RunNow{{Agent: s.Agent, ID: s.ID}}))
		assert.Equal(l, store.EffectDone, e.Code)
		assert.NotZero(l, e.Due)
	}},
	{"hold", "all three", func(l *losing, times int) {
		scope := store.Target{Agent: "a"}
		for _, h := range []store.Hold{
			{Target: scope, Until: moment.When{After: time.Minute}}, {Target: scope, Until: moment.When{After: time.Hour}, Prolong: true},
		} {
			l.loses("hold", times, nil)
			assert.Equal(l, store.EffectDone, l.effect(l.st.Hold(l.Context(), []store.Hold{h})).Code, h.Prolong)
		}
		l.loses("hold", times, nil)
		assert.Equal(l, store.EffectDone, l.effect(l.st.Unhold(l.Context(), []store.Target{scope})).Code)
		assert.Equal(l, store.EffectNone, l.effect(l.st.Unhold(l.Context(), []store.Target{scope})).Code, "another one")
	}},
	{"limit", "set and lifted", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.claim(l.other, "other")
		for _, lift := range []bool{false, true} {
			c := bound.LimitChange{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 1}, Lift: lift}
			l.loses("limit", times, nil)
			assert.Equal(l, store.EffectDone, l.effect(l.st.Limit(l.Context(), []bound.LimitChange{c})).Code)
			assert.Equal(l, store.EffectNone, l.effect(l.st.Limit(l.Context(), []bound.LimitChange{c})).Code, "another one")
		}
	}},
	{"permit", "of a limit that spans partitions", func(l *losing, times int) {
		set := bound.LimitChange{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k"}, Concurrency: 1}}
		assert.Equal(l, store.EffectDone, l.effect(l.st.Limit(l.Context(), []bound.LimitChange{set})).Code)
		l.submit(l.st, sub("a", "1"))
		l.submit(l.st, sub("a", "2"))
		claim := func(nonce string) store.Claim {
			return claimOf(l.T, l.st, store.PartitionOf("a", l.st.Partitions()), nonce, 10)
		}
		l.loses("permit", times, nil)
		first := claim("first")
		require.Len(l, first.Tasks, 1)
		assert.Empty(l, claim("none").Tasks, "there is no other permit")
		l.loses("permit", times, nil)
		l.ends(l.st, store.VerbComplete, first)
		second := claim("second")
		require.Len(l, second.Tasks, 1, "what ended is known")
		l.ends(l.st, store.VerbComplete, second)
	}},
	{"audit", "a repair", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		require.NoError(l, l.srv.Client(l.T).Del(l.Context(), l.st.Prefix()+"{0}:agenda").Err())
		l.loses("audit", times, nil)
		faults := 0
		for cursor := ""; ; {
			pages, err := l.st.Audit(l.Context(), []audit.Page{{Cursor: cursor, Repair: true}})
			require.NoError(l, err)
			faults += len(pages[0].Faults)
			if cursor = pages[0].Next; cursor == "" {
				break
			}
			if faults == 0 {
				times = max(times, 1)
				l.loses("audit", times, nil)
			}
		}
		assert.Equal(l, 1, faults, "what was repaired is told")
		assert.Len(l, l.claim(l.st, "n").Tasks, 1)
	}},
	{"presence", "an announcement", func(l *losing, times int) {
		l.loses("presence", times, nil)
		_, err := l.st.Announce(l.Context(), "tag", []byte("info"), time.Hour)
		require.NoError(l, err)
		all, err := l.other.Processes(l.Context())
		require.NoError(l, err)
		assert.Len(l, all, 1)
	}},
	{"signal", "a signal to a task that waits", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		c := l.claim(l.st, "n").Tasks[0]
		_, err := l.st.Settle(l.Context(), []store.Settlement{{Run: c.Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, Kind: c.Kind, Await: &store.Await{Key: "k"}}})
		require.NoError(l, err)
		l.loses("signal", times, nil)
		out, err := l.st.Signal(l.Context(), []store.Signal{{Agent: "a", Key: "k", Payload: []byte("p"), Keep: time.Hour}})
		require.NoError(l, err)
		assert.Equal(l, store.Signalled{Code: store.SignalResumed, Resumed: 1}, out[0])
		told, err := l.st.Heard(l.Context(), []store.Wait{{Agent: "a", ID: c.ID, Key: "k"}})
		require.NoError(l, err)
		assert.Equal(l, "p", string(told[0].Payload))
	}},
	{"signal", "a signal to nobody", func(l *losing, times int) {
		l.loses("signal", times, nil)
		out, err := l.st.Signal(l.Context(), []store.Signal{{Agent: "a", Key: "k", Keep: time.Hour}})
		require.NoError(l, err)
		assert.Equal(l, store.SignalKept, out[0].Code)
	}},
	{"book", "a booking", func(l *losing, times int) {
		at := moment.Of(time.Now().Add(time.Hour))
		l.loses("book", times, nil)
		booked, err := l.st.Book(l.Context(), alarm.Booking{At: at, Tag: "mine", For: time.Minute})
		require.NoError(l, err)
		assert.Equal(l, at, booked.Set)
		booked, err = l.other.Book(l.Context(), alarm.Booking{At: at, Tag: "another", For: time.Minute})
		require.NoError(l, err)
		assert.Zero(l, booked.Set)
		l.loses("book", times, nil)
		require.NoError(l, l.st.Confirm(l.Context(), alarm.Booking{At: at, Tag: "mine"}))
		booked, err = l.other.Book(l.Context(), alarm.Booking{})
		require.NoError(l, err)
		assert.Equal(l, at, booked.Next)
		assert.Zero(l, booked.Owed)
	}},
	{"tally", "what a process has counted", func(l *losing, times int) {
		l.loses("tally", times, nil)
		require.NoError(l, l.st.Tally(l.Context(), window.Tally{Process: "p", Seq: 1, Kinds: []window.Kind{{Kind: "k", Runs: 3}}}))
		kinds, _, err := l.other.Window(l.Context(), 2)
		require.NoError(l, err)
		assert.Equal(l, []window.Kind{{Kind: "k", Runs: 3}}, kinds)
	}},
	{"follow", "somebody listens", func(l *losing, times int) {
		l.loses("follow", times, nil)
		page, err := l.st.Follow(l.Context(), feed.Follow{Limit: 10, For: time.Minute})
		require.NoError(l, err)
		listened, err := l.other.Publish(l.Context(), 0, [][]byte{[]byte("one")})
		require.NoError(l, err)
		require.True(l, listened)
		l.loses("follow", times, nil)
		page, err = l.st.Follow(l.Context(), feed.Follow{After: page.Next, Limit: 10, For: time.Minute})
		require.NoError(l, err)
		require.Len(l, page.Items, 1)
		assert.Equal(l, "one", string(page.Items[0].Data))
	}},
	{"publish", "events", func(l *losing, times int) {
		from, err := l.other.Follow(l.Context(), feed.Follow{Limit: 10, For: time.Minute})
		require.NoError(l, err)
		l.loses("publish", times, nil)
		listened, err := l.st.Publish(l.Context(), 2, [][]byte{[]byte("one"), []byte("two")})
		require.NoError(l, err)
		assert.True(l, listened)
		page, err := l.other.Follow(l.Context(), feed.Follow{After: from.Next, Limit: 10, For: time.Minute})
		require.NoError(l, err)
		require.Len(l, page.Items, 3, "each is kept once")
		assert.Equal(l, 2, page.Items[0].Lost)
	}},
	{"receive", "a message", func(l *losing, times int) {
		r := message.Receipt{Message: "m", By: "0123456789abcdef", State: message.Begun, For: time.Hour}
		l.loses("receive", times, nil)
		got, err := l.st.Receive(l.Context(), r)
		require.NoError(l, err)
		assert.Zero(l, got, "it was taken by this very call")
		r.By = "fedcba9876543210"
		got, err = l.other.Receive(l.Context(), r)
		require.NoError(l, err)
		assert.Equal(l, message.Begun, got.State)
	}},
	{"repartition", "the first step of a move", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		tasks := 0
		l.loses("repartition", times, nil)
		config := redisstore.Config{URL: l.srv.URL, Prefix: l.st.Prefix()}
		_, err := redisstore.RepartitionWith(l.Context(), config, redisstore.Repartitioning{To: 4}, l.sees)
		require.NoError(l, err)
		for p := range 4 {
			claims, err := open(l.T, config).Claim(l.Context(), []store.ClaimRequest{{
				Partition: p, Nonce: "0123456789abcdef", Kinds: []string{"k"}, Limit: 10, Lease: time.Minute,
			}})
			require.NoError(l, err)
			require.NoError(l, claims[0].Err)
			tasks += len(claims[0].Tasks)
		}
		assert.Equal(l, 1, tasks)
	}},
	{"sweep", "beside a claim", func(l *losing, times int) {
		l.submit(l.st, sub("a", "1"))
		l.st.Sweep()
		l.loses("sweep", times, nil)
		assert.Len(l, l.claim(l.st, "n").Tasks, 1)
	}},
}

// The answer of each script that writes gets lost, once and several times in a row: its caller is told what it has done, and
// nothing is done twice.
func TestLostAnswersOfEveryScript(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for i, c := range lostAnswers {
		for _, times := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%s/%d", c.script, c.name, times), func(t *testing.T) {
				t.Parallel()
				partitions := 1
				if c.name == "several of several partitions" || c.script == "permit" {
					partitions = 2
				}
				config := redisstore.Config{URL: srv.URL, Partitions: partitions, Prefix: fmt.Sprintf("l%d-%d:", i, times)}
				l := &losing{T: t, srv: srv, st: open(t, config), other: open(t, config), sees: newSpy()}
				l.st.AddHook(l.sees)
				c.test(l, times)
				assert.GreaterOrEqual(t, l.lost, times, "no answer was lost")
			})
		}
	}
}

var writes = regexp.MustCompile(`'(HSET|HSETNX|HDEL|HINCRBY|ZADD|ZREM|LPUSH|LTRIM|RPOP|SET|DEL|UNLINK|RENAME|PEXPIRE|PERSIST)'`)

// Every script that writes has a test for when its answer is lost; one that is new belongs in the table above.
func TestEveryScriptThatWritesHasLostAnswers(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, c := range lostAnswers {
		tested[c.script] = true
	}
	for _, f := range redisstore.ScriptFiles() {
		assert.Equal(t, writes.MatchString(f.Text), tested[strings.TrimPrefix(f.Name, "plain")], "script %s", f.Name)
	}
}

// What a process was answered is kept once for each call that it had under way at once, and for some minutes.
func TestAnswersAreFew(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	clock := storetest.NewClock()
	st := still(t, redisstore.Config{URL: srv.URL}, clock, false, storetest.Options{Partitions: 1})
	for i := range 500 {
		_, err := st.Submit(t.Context(), []store.Submission{sub(fmt.Sprint("a", i), "1")})
		require.NoError(t, err)
	}
	var deletions []store.Deletion
	for i := range 10 {
		deletions = append(deletions, deletion(sub(fmt.Sprint("a", i), "1")))
	}
	for range 3 {
		_, err := st.Delete(t.Context(), deletions)
		require.NoError(t, err)
	}
	c := srv.Client(t)
	key := st.Prefix() + "{0}:answers"
	assert.EqualValues(t, len(deletions), c.HLen(t.Context(), key).Val())
	clock.Advance(9 * time.Minute)
	st.Sweep()
	claim(t, st, "early", 1)
	assert.EqualValues(t, len(deletions), c.HLen(t.Context(), key).Val(), "somebody may wait for them")
	clock.Advance(2 * time.Minute)
	_, err := st.Submit(t.Context(), []store.Submission{sub("new", "1")})
	require.NoError(t, err)
	st.Sweep()
	claim(t, st, "late", 1)
	assert.EqualValues(t, 1, c.HLen(t.Context(), key).Val(), "of the last call only")
}

// An answer in Redis that is not one is none: the call is carried out.
func TestDamagedAnswers(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	for i, damage := range []string{"", "x", "\xc1", "\x01"} {
		config := redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: fmt.Sprintf("damaged%d:", i)}
		l := &losing{T: t, srv: srv, st: open(t, config), other: open(t, config), sees: newSpy()}
		l.st.AddHook(l.sees)
		key := l.st.Prefix() + "{0}:answers"
		l.loses("submit", 1, func() {
			c := srv.Client(t)
			for caller, answer := range c.HGetAll(t.Context(), key).Val() {
				require.NoError(t, c.HSet(t.Context(), key, caller, answer[:min(8, len(answer))]+damage).Err())
			}
		})
		assert.False(t, l.submit(l.st, sub("a", "1")).Created, "it is there by now")
	}
}
