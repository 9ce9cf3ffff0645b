package record_test

// The history as bytes: appending to what is stored must write what decoding and encoding all of it would.

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// anew is a state with some runs, none of which was stored before.
func anew(runs []record.Run) *record.State {
	var s record.State
	for _, r := range runs {
		s.Runs.Add(r)
	}
	return &s
}

// stepped is a state that was stored and read after each run.
func stepped(t *testing.T, runs []record.Run) *record.State {
	t.Helper()
	s := &record.State{}
	for i := range runs {
		s.Runs.Add(runs[i])
		got, err := record.DecodeState(s.Encode())
		require.NoError(t, err)
		s = &got
		from := max(i+1-record.KeptRuns, 0)
		require.Equal(t, anew(runs[from:i+1]).Encode(), s.Encode(), "after run %d", i)
		require.Equal(t, runs[from:i+1], s.Runs.All())
	}
	return s
}

func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	var runs []record.Run
	for i := range record.KeptRuns + 5 {
		runs = append(runs, record.Run{Attempt: i + 1, Outcome: "success", Process: []string{"p", "p", "", "q"}[i%4]})
	}
	s := stepped(t, runs)
	require.Equal(t, record.KeptRuns, s.Runs.Len())
	assert.Equal(t, 6, s.Runs.All()[0].Attempt)
	kept := s.Carry()
	assert.Equal(t, s.Runs.All(), kept.Runs.All())

	// Many at once leave nothing of what was stored.
	for i := range record.KeptRuns + 1 {
		s.Runs.Add(record.Run{Attempt: 100 + i, Outcome: "crashed", Process: "q"})
	}
	assert.Equal(t, anew(s.Runs.All()).Encode(), s.Encode())
	assert.Equal(t, 101, s.Runs.All()[0].Attempt)
}

func TestTheLastRunCanBeTakenOut(t *testing.T) {
	t.Parallel()
	s := stepped(t, []record.Run{{Attempt: 1, Outcome: "failed", Process: "p"}, {Attempt: 2, Outcome: "skipped", Process: "p"}})
	last, some := s.Runs.Pop()
	require.True(t, some)
	assert.Equal(t, record.Run{Attempt: 2, Outcome: "skipped", Process: "p"}, last)
	s.Runs.Add(last)
	assert.Equal(t, anew(s.Runs.All()).Encode(), s.Encode())
	_, _ = s.Runs.Pop()
	_, some = s.Runs.Pop()
	assert.True(t, some)
	_, some = s.Runs.Pop()
	assert.False(t, some)
	assert.Empty(t, s.Encode())
}

// What a newer binary has written of a run is kept as long as the run.
func TestUnknownFieldsOfRunsStay(t *testing.T) {
	t.Parallel()
	run := []byte{3 << 1, 2, 9<<1 | 1, 1, 'x'} // the first attempt, and a field of later
	s, err := record.DecodeState(append([]byte{11<<1 | 1, byte(len(run))}, run...))
	require.NoError(t, err)
	s.Runs.Add(record.Run{Attempt: 2, Outcome: "success"})
	assert.Contains(t, string(s.Encode()), string(run))
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5}, []byte("0123456789abcdefghijklmn"))
	f.Add((&record.State{Attempt: 1, Result: []byte("1")}).Encode(), []byte{0, 0, 0, 0, 1, 1, 2, 3, 3, 0, 1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 3, 3, 0})
	sample := sampleState()
	f.Add(sample.Encode(), []byte{4})
	outcomes := []string{"success", "failed", "crashed", "skipped"}
	f.Fuzz(func(t *testing.T, stored, steps []byte) {
		runs := make([]record.Run, 0, len(steps))
		for i, b := range steps[:min(len(steps), 64)] {
			runs = append(runs, record.Run{
				Started: moment.Millis(b), Attempt: i + 1, Outcome: outcomes[b>>2&3], Process: []string{"", "p", "q", "r"}[b&3], Error: []string{"", "e"}[b>>4&1],
			})
		}
		stepped(t, runs)
		// What anybody may have stored, once it is written as this package writes it.
		s, err := record.DecodeState(stored)
		if err != nil {
			return
		}
		clean := s
		clean.Runs = anew(s.Runs.All()).Runs
		s, err = record.DecodeState(clean.Encode())
		require.NoError(t, err)
		for _, r := range runs[:min(len(runs), 3)] {
			want := s
			want.Runs = anew(append(s.Runs.All(), r)).Runs
			s.Runs.Add(r)
			require.Equal(t, want.Encode(), s.Encode())
			s, err = record.DecodeState(s.Encode())
			require.NoError(t, err)
		}
	})
}
