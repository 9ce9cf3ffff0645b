package redisstore_test

// What a Redis at maxmemory still does: it opens, guards, ends what runs, and wakes what waits. See TestFullMemory for the rest.

import (
	"bytes"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/alarm"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// A store opens on a full Redis, tells of it, and does whatever is no submit.
func TestAFullRedisKeepsGuardsAndEnds(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t, "--maxmemory-policy", "noeviction")
	before := open(t, redisstore.Config{URL: srv.URL, Partitions: 2})
	_, err := before.Submit(t.Context(), []store.Submission{sub("a", "waits"), {Agent: "a", ID: "later", Kind: "k", Level: store.LevelLow, Due: moment.When{After: time.Hour}}})
	require.NoError(t, err)
	c := claimFull(t, before, "a", "first-0123456789")
	_, err = before.Settle(t.Context(), []store.Settlement{{
		Run: c.Tasks[0].Run, Verb: store.VerbAgain, Due: moment.When{After: time.Hour}, State: []byte("s"), Kind: "k", Await: &store.Await{Key: "go"},
	}})
	require.NoError(t, err)
	require.NoError(t, srv.Client(t).ConfigSet(t.Context(), "maxmemory", "1").Err())

	var log bytes.Buffer
	st := open(t, redisstore.Config{URL: srv.URL, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	assert.Contains(t, log.String(), "Redis is at maxmemory")
	_, err = st.Submit(t.Context(), []store.Submission{sub("b", "1")})
	require.ErrorIs(t, err, store.ErrFull)

	owed := sub("a", "delivery")
	owed.Owed, owed.Due = true, moment.When{After: time.Hour}
	_, err = st.Submit(t.Context(), []store.Submission{owed})
	require.NoError(t, err, "what follows an end")
	_, err = st.Submit(t.Context(), []store.Submission{owed, sub("a", "1")})
	require.ErrorIs(t, err, store.ErrFull)
	later := store.Submission{Agent: "a", ID: "later", Kind: "k", Level: store.LevelLow, Due: moment.When{After: 2 * time.Hour}, Conflict: store.ConflictReplace}
	_, err = st.Submit(t.Context(), []store.Submission{later})
	require.ErrorIs(t, err, store.ErrFull)
	was, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"later"}})
	require.NoError(t, err)
	later.Owed, later.Version = true, was.Tasks[0].Version
	placed, err := st.Submit(t.Context(), []store.Submission{later})
	require.NoError(t, err, "what replaces a delivery")
	assert.True(t, placed[0].Replaced)
	found, err := st.Get(t.Context(), store.Get{Agent: "a", IDs: []string{"delivery"}})
	require.NoError(t, err)
	d := &found.Tasks[0]
	effects, err := st.Replan(t.Context(), []store.Replan{{Agent: "a", ID: d.ID, Version: d.Version, Was: d.Due, Due: found.Now, State: []byte("noted")}})
	require.NoError(t, err)
	assert.Equal(t, store.EffectDone, effects[0].Code)

	_, err = st.Limit(t.Context(), []bound.LimitChange{{Limit: bound.Limit{About: bound.LimitTarget{Kind: "k", Each: bound.EachAgent}, Concurrency: 9}}})
	require.NoError(t, err)
	_, err = st.Profile(t.Context(), []store.ProfileChange{{Agent: "a", Now: []byte("profile")}})
	require.NoError(t, err)
	_, err = st.Stamp(t.Context(), "STAMP0000000000000000001")
	require.NoError(t, err)
	_, err = st.Announce(t.Context(), "process", []byte("here"), time.Minute)
	require.NoError(t, err)
	_, err = st.Book(t.Context(), alarm.Booking{At: found.Now + 60_000, Tag: "tag", For: time.Second})
	require.NoError(t, err)
	_, err = st.Receive(t.Context(), message.Receipt{Message: "m", By: "by-0123456789abc", State: 'b', For: time.Minute})
	require.NoError(t, err)
	signalled, err := st.Signal(t.Context(), []store.Signal{{Agent: "a", Key: "go", Payload: []byte("now"), Keep: time.Hour}})
	require.NoError(t, err)
	assert.Equal(t, 1, signalled[0].Resumed)

	c = claimFull(t, st, "a", "second-123456789")
	require.Len(t, c.Tasks, 2, "the delivery, and what was signalled")
	cancelled, err := st.Cancel(t.Context(), []store.Cancellation{{Agent: "a", ID: c.Tasks[0].ID, Order: []byte("stop")}})
	require.NoError(t, err, "a run can be ended")
	assert.Equal(t, store.EffectOrdered, cancelled[0].Code)
	settle(t, st, store.VerbCancel, c.Tasks[0])
	c.Tasks = c.Tasks[1:]
	settle(t, st, store.VerbComplete, c.Tasks...)
}

// claimFull claims what is due of an agent.
func claimFull(t *testing.T, st *redisstore.Store, agent, nonce string) store.Claim {
	t.Helper()
	claims, err := st.Claim(t.Context(), []store.ClaimRequest{{
		Partition: store.PartitionOf(agent, st.Partitions()), Nonce: nonce[:store.NonceLen], Kinds: []string{"k"}, Limit: 10, Lease: time.Minute,
	}})
	require.NoError(t, err)
	require.NoError(t, claims[0].Err)
	return claims[0]
}
