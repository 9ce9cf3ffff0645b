package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// crowded is a store with tasks of agents with one and with several, of several kinds and groups, waiting, running, parked and
// resting; enough for several pages of an audit.
func crowded(t *testing.T) *damaged {
	t.Helper()
	r := newDamaged(t)
	resting := touching(sub("agent1", "rests"))
	resting.Pulse = store.Pulse{}
	_, err := r.st.Touch(t.Context(), []store.Touch{resting})
	require.NoError(t, err)
	c := claim(t, r.st, "rests", 5)
	require.Len(t, c.Tasks, 1)
	_, err = r.st.Settle(t.Context(), []store.Settlement{{
		Run: c.Tasks[0].Run, Kind: "k", Verb: store.VerbRest, Due: moment.When{After: time.Hour}, Floor: &store.Floor{},
	}})
	require.NoError(t, err)
	var subs []store.Submission
	for i := range 900 {
		s := sub(fmt.Sprint("one", i), "1")
		if i%2 == 0 {
			s = sub(fmt.Sprint("agent", i%7), fmt.Sprint(i))
		}
		s.Kind = fmt.Sprint("k", i%5)
		s.Group = []string{"", "g", "h:1"}[i%3]
		subs = append(subs, s)
	}
	_, err = r.st.Submit(t.Context(), subs)
	require.NoError(t, err)
	_, err = r.st.Claim(t.Context(), []store.ClaimRequest{{
		Nonce: fmt.Sprintf("%-16s", "run"), Kinds: []string{"k1", "k2"}, Leave: []string{"k3", "k"}, Limit: 20, Lease: time.Hour,
	}})
	require.NoError(t, err)
	return r
}

// counters are all counts that an audit compares.
func (r *damaged) counters() map[string]string {
	r.t.Helper()
	c := r.srv.Client(r.t)
	out := map[string]string{}
	for field, n := range c.HGetAll(r.t.Context(), r.base+"kinds").Val() {
		if n != "0" {
			out[field] = n
		}
	}
	for _, field := range []string{"live", "running"} {
		out[field] = c.HGet(r.t.Context(), r.base+"counters", field).Val()
	}
	for _, key := range c.Keys(r.t.Context(), r.base+"group:*").Val() {
		if n := c.HGet(r.t.Context(), key, "live").Val(); n != "0" {
			out[key[len(r.base):]] = n
		}
	}
	return out
}

// Whatever counter is wrong, an audit of a quiet store finds it, and mends it at once.
func TestAuditMendsCounters(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]func(r *damaged){
		"live":                 func(r *damaged) { r.do("HINCRBY", "counters", "live", 3) },
		"running":              func(r *damaged) { r.do("HINCRBY", "counters", "running", -1) },
		"live of a kind":       func(r *damaged) { r.do("HINCRBY", "kinds", "lk1", -1) },
		"running of a kind":    func(r *damaged) { r.do("HINCRBY", "kinds", "rk1", 1) },
		"resting of a kind":    func(r *damaged) { r.do("HINCRBY", "kinds", "zk", 1) },
		"none of a kind":       func(r *damaged) { r.do("HDEL", "kinds", "lk1", "rk2") },
		"a kind without tasks": func(r *damaged) { r.do("HSET", "kinds", "lgone", 1, "rgone", -2, "zgone", 1) },
		"a counter of a kind":  func(r *damaged) { r.do("HSET", "kinds", "lk1", "what?") },
		"too many of a group":  func(r *damaged) { r.do("HINCRBY", "group:agent1:g", "live", 1) },
		"too few of a group":   func(r *damaged) { r.do("HINCRBY", "group:agent1:g", "live", -100) },
		"a group is over": func(r *damaged) {
			r.do("HSET", "group:agent1:g", "live", 0, "over", 1)
			r.do("PEXPIRE", "group:agent1:g", 1000)
		},
		"a group without tasks": func(r *damaged) {
			r.do("HSET", "group:agent1:gone", "live", 1)
			r.do("HSET", "groups", "@agent1:gone", 1)
		},
		"the kinds are gone":      func(r *damaged) { r.do("DEL", "kinds") },
		"a group is gone":         func(r *damaged) { r.do("DEL", "group:agent1:g") },
		"a lease is gone as well": func(r *damaged) { r.do("HINCRBY", "counters", "live", 3); r.do("ZREM", "agenda", "one1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := crowded(t)
			right := r.counters()
			require.Equal(t, "901", right["live"])
			faults, n := audited(t, r.st, false)
			require.Empty(t, faults)
			require.Equal(t, 901, n)
			damage(r)
			require.NotEmpty(t, func() []audit.Fault { f, _ := audited(t, r.st, false); return f }())
			wrong := r.counters()
			faults, n = audited(t, r.st, true)
			assert.NotEmpty(t, faults)
			assert.Equal(t, 901, n, "each task is told once")
			assert.NotEqual(t, wrong, right)
			assert.Equal(t, right, r.counters())
			faults, _ = audited(t, r.st, true)
			assert.Empty(t, faults)
			left := r.srv.Client(t).Keys(t.Context(), r.base+"recount:*").Val()
			assert.Empty(t, left, "a round leaves nothing behind")
			ttl := r.srv.Client(t).TTL(t.Context(), r.base+"group:agent1:g").Val()
			assert.Equal(t, time.Duration(-1), ttl, "a group with live tasks is not forgotten")
		})
	}
}

// While work goes on an audit tells nothing wrong, and what it mends it mends right: a round in which anything changed compares
// nothing.
func TestAuditBesideWork(t *testing.T) {
	t.Parallel()
	r := crowded(t)
	for name, work := range map[string]func(i int){
		"submit": func(i int) {
			s := sub(fmt.Sprint("new", i), "1")
			s.Group = "g"
			_, err := r.st.Submit(t.Context(), []store.Submission{s})
			require.NoError(t, err)
		},
		"delete": func(i int) {
			s := sub(fmt.Sprint("one", 1+2*i), "1")
			_, err := r.st.Delete(t.Context(), []store.Deletion{deletion(s)})
			require.NoError(t, err)
		},
		"touch": func(int) {
			_, err := r.st.Touch(t.Context(), []store.Touch{touching(sub("agent1", "rests"))})
			require.NoError(t, err)
		},
		"claim and settle": func(i int) {
			settle(t, r.st, store.VerbComplete, claim(t, r.st, fmt.Sprint("busy", i), 1).Tasks...)
		},
		"another audit": func(int) { _, _ = audited(t, r.st, true) },
	} {
		for at := range 4 {
			page := 0
			for cursor := ""; ; page++ {
				pages, err := r.st.Audit(t.Context(), []audit.Page{{Cursor: cursor, Repair: true}})
				require.NoError(t, err)
				require.Empty(t, pages[0].Faults, "%s at page %d", name, page)
				if page == at {
					work(page)
				}
				if cursor = pages[0].Next; cursor == "" {
					break
				}
			}
			require.GreaterOrEqual(t, page, at, "the work was done")
		}
	}
	faults, _ := audited(t, r.st, false)
	assert.Empty(t, faults, "and once it is quiet everything is right")
}

// An audit looks at the tasks although what it would compare the counters with cannot be read.
func TestAuditWithoutCounters(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"counters", "kinds", "groups"} {
		r := crowded(t)
		r.do("DEL", key)
		r.do("SET", key, "x")
		faults, n := audited(t, r.st, false)
		assert.Empty(t, faults, key)
		assert.Equal(t, 901, n, key)
	}
}

// The tasks of an older version, which did not keep their groups, count in those that they name.
func TestAuditKnowsOldGroups(t *testing.T) {
	t.Parallel()
	r := newDamaged(t)
	s, err := core.New(r.st, core.Config{})
	require.NoError(t, err)
	for _, agent := range []string{"a b", "c"} {
		for _, id := range []string{"1", "2"} {
			_, err := s.Submit(t.Context(), core.NewTask{Agent: agent, ID: id, Kind: "k", Group: "g h", Payload: "p"})
			require.NoError(t, err)
		}
	}
	r.do("HDEL", "groups", "a%20b:1", "a%20b:2", "c:1")
	faults, _ := audited(t, r.st, false)
	assert.Empty(t, faults)
	r.do("HSET", "group:c:g%20h", "live", 5)
	faults, _ = audited(t, r.st, true)
	assert.Equal(t, []audit.Fault{{Agent: "c", Code: audit.Miscounted}}, faults)
	counts, err := s.Group(t.Context(), "c", "g h")
	require.NoError(t, err)
	assert.Equal(t, model.GroupCounts{Live: 2}, counts)
}
