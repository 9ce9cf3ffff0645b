package memstore

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Of more tasks than one signal resumes, those with the lowest ids are first: a history in memory replays.
func TestASignalResumesInOrder(t *testing.T) {
	t.Parallel()
	s := New(Config{Partitions: 1})
	p := s.parts[0]
	const all = mostTold + 50
	for i := range all {
		id := fmt.Sprintf("%03d", i)
		_, err := s.Submit(t.Context(), []store.Submission{{Agent: "a", ID: id, Kind: "k", Level: store.LevelLow, Due: moment.When{At: moment.Never}}})
		require.NoError(t, err)
		p.await(p.task("a", id), &store.Await{Key: "go"}, s.now())
	}
	told, err := s.Signal(t.Context(), []store.Signal{{Agent: "a", Key: "go"}})
	require.NoError(t, err)
	assert.Equal(t, []store.Signalled{{Code: store.SignalResumed, Resumed: mostTold, More: true}}, told)
	for i := range all {
		id := fmt.Sprintf("%03d", i)
		assert.Equal(t, i < mostTold, p.task("a", id).told != nil, id)
	}
}
