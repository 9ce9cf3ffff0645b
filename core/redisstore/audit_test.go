package redisstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// audited are all faults of a store of one partition.
func audited(t *testing.T, st store.Store, repair bool) (faults []audit.Fault, tasks int) {
	t.Helper()
	seen := map[audit.Fault]bool{}
	for cursor := ""; ; {
		pages, err := st.Audit(t.Context(), []audit.Page{{Cursor: cursor, Repair: repair}})
		require.NoError(t, err)
		for _, f := range pages[0].Faults {
			if !seen[f] {
				seen[f] = true
				faults = append(faults, f)
			}
		}
		tasks += pages[0].Tasks
		if cursor = pages[0].Next; cursor == "" {
			return faults, tasks
		}
	}
}

func hold(t *testing.T, st store.Store, scope store.Target, until moment.When) {
	t.Helper()
	_, err := st.Hold(t.Context(), []store.Hold{{Target: scope, Until: until}})
	require.NoError(t, err)
}

// Whatever is taken out of Redis by hand, or lost by it, is found; what can be repaired runs after that.
func TestAuditRepairsWhatIsDamaged(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	single, one, two := sub("a", "1"), sub("b", "1"), sub("b", "2")
	one.Level = store.LevelHigh
	lost := func(agent, id string) audit.Fault { return audit.Fault{Agent: agent, ID: id, Code: audit.Lost} }
	cases := []struct {
		name   string
		damage func(t *testing.T, st store.Store, do func(args ...any))
		faults []audit.Fault
		runs   int // how many of the three tasks run once it is repaired
	}{
		{"nothing", func(*testing.T, store.Store, func(...any)) {}, nil, 3},
		{"an agent's only task left the agenda", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("ZREM", "agenda", "a")
		}, []audit.Fault{lost("a", "1")}, 3},
		{"an agent with tasks left the agenda", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("ZREM", "agenda", "b")
		}, []audit.Fault{{Agent: "b", Code: audit.Asleep}}, 3},
		{"an agent is looked at too late", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("ZADD", "agenda", 9e12, "b")
		}, []audit.Fault{{Agent: "b", Code: audit.Asleep}}, 3},
		{"an agent forgot a level", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("HSET", "agents", "b", "M42")
		}, []audit.Fault{{Agent: "b", Code: audit.Asleep}}, 3},
		{"a task left its queue", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("DEL", "queue:1:b")
		}, []audit.Fault{lost("b", "1")}, 3},
		{"all queues and the agenda are gone", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("DEL", "queue:1:b", "queue:3:b", "agenda")
		}, []audit.Fault{lost("a", "1"), lost("b", "1"), lost("b", "2")}, 3},
		{"a lease is gone", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			require.Len(t, claim(t, st, "dead", 3).Tasks, 3)
			do("DEL", "leases")
		}, []audit.Fault{lost("a", "1"), lost("b", "1"), lost("b", "2")}, 3},
		{"the claims are gone", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			require.Len(t, claim(t, st, "dead", 3).Tasks, 3)
			do("DEL", "claims")
		}, []audit.Fault{lost("a", "1"), lost("b", "1"), lost("b", "2")}, 3},
		{"a hold is gone", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			hold(t, st, store.Target{Agent: "a"}, moment.When{})
			require.Len(t, claim(t, st, "first", 3).Tasks, 2)
			do("DEL", "holds")
		}, []audit.Fault{{Agent: "a", ID: "1", Code: audit.Stranded}}, 1},
		{"a hold of a task is gone", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			hold(t, st, store.Target{Agent: "b", ID: "2"}, moment.When{})
			require.Len(t, claim(t, st, "first", 3).Tasks, 2)
			do("DEL", "holds")
		}, []audit.Fault{{Agent: "b", ID: "2", Code: audit.Stranded}}, 1},
		{"the end of a hold is gone", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			hold(t, st, store.Target{Agent: "a"}, moment.When{After: time.Nanosecond})
			hold(t, st, store.Target{Agent: "a"}, moment.When{After: 50 * time.Millisecond})
			require.Len(t, claim(t, st, "first", 3).Tasks, 2)
			do("ZREM", "leases", "@a:a")
			do("HSET", "holds", "a:a", "0000000000001"+"0000000000001")
		}, []audit.Fault{{Agent: "a", ID: "1", Code: audit.Stranded}}, 1},
		{"nobody knows of a parked kind", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			_, err := st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "other"), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
			require.NoError(t, err)
			do("HDEL", "parked", "k")
			do("HSET", "parked", "other", 1)
		}, []audit.Fault{
			{Agent: "a", ID: "1", Code: audit.Stranded}, {Agent: "b", ID: "1", Code: audit.Stranded}, {Agent: "b", ID: "2", Code: audit.Stranded}, {Code: audit.Miscounted}, {Code: audit.Asleep},
		}, 3},
		{"nobody knows of anything parked", func(t *testing.T, st store.Store, do func(...any)) {
			t.Helper()
			_, err := st.Claim(t.Context(), []store.ClaimRequest{{Nonce: fmt.Sprintf("%-16s", "other"), Kinds: []string{"x"}, Limit: 5, Lease: time.Minute}})
			require.NoError(t, err)
			do("DEL", "parked")
		}, []audit.Fault{lost("a", "1"), lost("b", "1"), lost("b", "2")}, 3},
		{"the hint is gone", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("DEL", "due")
		}, []audit.Fault{{Code: audit.Asleep}}, 3},
		{"the hint is late", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("SET", "due", "9000000000000")
		}, []audit.Fault{{Code: audit.Asleep}}, 3},
		{"an agent is gone", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("HDEL", "agents", "b")
		}, []audit.Fault{lost("b", "1"), lost("b", "2"), {Agent: "b", Code: audit.Gone}}, 3},
		{"an agent is another", func(_ *testing.T, st store.Store, do func(...any)) {
			do("EVAL", "redis.call('HSET', KEYS[1], 'b', (string.gsub(redis.call('HGET', KEYS[1], 'a'), '%z\\0011', '\\0\\0019', 1))) return 1", 1, "agents")
		}, []audit.Fault{lost("b", "1"), lost("b", "2")}, 4},
		{"a record is none", func(_ *testing.T, _ store.Store, do func(...any)) {
			do("HSET", "agents", "z", "?")
			do("HSET", "tasks", "b:3", "?")
		}, []audit.Fault{{Agent: "z", Code: audit.Unreadable}, {Agent: "b", ID: "3", Code: audit.Unreadable}}, 3},
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			st := open(t, redisstore.Config{URL: srv.URL, Partitions: 1, Prefix: fmt.Sprintf("audit%d:", i)})
			_, err := st.Submit(t.Context(), []store.Submission{single, one, two})
			require.NoError(t, err)
			options, err := redis.ParseURL(srv.URL)
			require.NoError(t, err)
			client := redis.NewClient(options)
			t.Cleanup(func() { _ = client.Close() })
			found, err := client.Keys(t.Context(), st.Prefix()+"*:agents").Result()
			require.NoError(t, err)
			require.Len(t, found, 1)
			base := strings.TrimSuffix(found[0], "agents")
			c.damage(t, st, func(args ...any) {
				keys := 1
				switch args[0] {
				case "DEL":
					keys = len(args) - 1
				case "EVAL":
					args[3] = base + args[3].(string)
					keys = 0
				}
				for k := 1; k <= keys; k++ {
					args[k] = base + args[k].(string)
				}
				require.NoError(t, client.Do(t.Context(), args...).Err())
			})
			faults, _ := audited(t, st, false)
			assert.ElementsMatch(t, c.faults, faults, "found")
			again, _ := audited(t, st, false)
			assert.ElementsMatch(t, c.faults, again, "to look changes nothing")
			faults, _ = audited(t, st, true)
			assert.Equal(t, len(c.faults) == 0, len(faults) == 0)
			left, _ := audited(t, st, false)
			for _, f := range left {
				assert.Equal(t, audit.Unreadable, f.Code, "repaired")
			}
			looked, err := st.Look(t.Context(), []store.LookRequest{{Kinds: []string{"k"}}})
			require.NoError(t, err)
			assert.NotZero(t, looked[0].NextDue, "a look finds work")
			assert.LessOrEqual(t, looked[0].NextDue, looked[0].Now)
			ran := 0
			for k := range 4 {
				tasks := claim(t, st, fmt.Sprint("repaired", k), 3).Tasks
				settle(t, st, store.VerbComplete, tasks...)
				ran += len(tasks)
			}
			assert.Equal(t, c.runs, ran)
		})
	}
}
