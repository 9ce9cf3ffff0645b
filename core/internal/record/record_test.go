package record_test

import (
	_ "embed"
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

//go:embed testdata/v1.txt
var golden string

const instant = 1772366400000

func sampleBody() record.Body {
	return record.Body{
		Payload: []byte(`{"a":1}`), Every: time.Minute, FromStart: true, MaxAttempts: 3, Backoff: time.Second,
		Timeout: time.Hour, Lease: time.Minute, Group: "g", TraceID: "t", Traceparent: "p", SessionID: "s", UserID: "u",
		Labels: []string{"tier\x00gold"}, Info: []byte("{}"), Tags: []string{"x", "y"},
		Cron: "@daily", Zone: "Europe/Berlin", MatchAll: true, GapSkip: true,
		Jitter: 5 * time.Second, Overlap: "allow", Misfire: "all", PauseAfter: -1, MinInterval: time.Second, LimitKey: "key",
		Parent: "p", Occurrence: instant,
		Activity: &record.Activity{Pulse: store.Pulse{MaxWait: time.Minute, Debounce: true}, MaxFailures: 3},
	}
}

func sampleState() record.State {
	s := record.State{
		Attempt: 2, Nominal: instant, Interval: time.Hour, Failures: 3, RunCount: 4, SkipCount: 5, ErrorCount: 6,
		Checkpoint: []byte("1"), Progress: []byte("2"), Result: []byte("3"), RetryAfters: 7, CutOffs: 2, Idle: 1, CaughtUp: 2, Spread: true,
		Retire: 9, Cooling: 10, Children: []string{"c", "d"},
	}
	processes := []string{"", "p", "p", "", "q", "q", "q", "r"}
	for i, o := range []string{"success", "failed", "cancelled", "snoozed", "yielded", "crashed", "skipped", "released"} {
		s.Runs.Add(record.Run{
			Started: moment.Millis(instant + i), Duration: time.Duration(i) * time.Second, Attempt: i, Outcome: o, Error: "e", Process: processes[i],
		})
	}
	return s
}

func sampleFinished() record.Finished {
	return record.Finished{
		Kind: "k", Level: store.LevelHigh, Submitted: instant, Due: instant + 5000, Reason: "r", Group: "g", Body: []byte("b"), State: []byte("s"),
	}
}

var (
	sampleHold    = record.Hold{By: "b", Reason: "r", Group: "g", Kind: "k", Level: store.LevelMedium, Callback: "https://hooks.example.com"}
	sampleFailure = record.Failure{Agent: "a", ID: "i", Error: "e"}
)

// stored is a record of testdata/v1.txt, which the first version of this format has written.
func stored(t *testing.T, name string) []byte {
	t.Helper()
	for line := range strings.Lines(golden) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			data, err := hex.DecodeString(strings.TrimSpace(rest))
			require.NoError(t, err)
			return data
		}
	}
	require.Fail(t, "there is no golden "+name)
	return nil
}

// What an earlier version has stored is read as it was meant, and written to the same byte.
func TestGolden(t *testing.T) {
	t.Parallel()
	b, s, f := sampleBody(), sampleState(), sampleFinished()
	h, e := sampleHold, sampleFailure
	for name, data := range map[string][]byte{
		"body": b.Encode(), "state": s.Encode(), "finished": f.Encode(), "hold": h.Encode(), "failure": e.Encode(),
	} {
		assert.Equal(t, stored(t, name), data, name)
	}
	gotBody, err := record.DecodeBody(stored(t, "body"))
	require.NoError(t, err)
	assert.Equal(t, b, gotBody)
	former, err := record.DecodeBody(stored(t, "body-of-fields"))
	require.NoError(t, err)
	b.Labels = []string{"mem_cube_id\x00m", "user_name\x00n"} // had fields of their own
	assert.Equal(t, b, former)
	gotState, err := record.DecodeState(stored(t, "state"))
	require.NoError(t, err)
	assert.Equal(t, s.Runs.All(), gotState.Runs.All())
	s.Runs, gotState.Runs = record.History{}, record.History{} // they are equal, but one of them is as it is stored
	assert.Equal(t, s, gotState)
	gotFinished, err := record.DecodeFinished(stored(t, "finished"))
	require.NoError(t, err)
	assert.Equal(t, f, gotFinished)
	assert.Equal(t, h, record.DecodeHold(stored(t, "hold")))
	assert.Equal(t, e, record.DecodeFailure(stored(t, "failure")))
}

// A field that has no row in its table would be lost without a word.
func TestEveryFieldIsStored(t *testing.T) {
	t.Parallel()
	b := sampleBody()
	b.Urgent, b.Manual, b.Origin = true, true, &record.Origin{Agent: "a", ID: "1", RootAgent: "r", RootID: "2", Depth: 3}
	b.Callback = &record.Callback{URL: "https://c"}
	b.Expects = &record.Expectation{Within: time.Hour, Notify: "signal:late"}
	got, err := record.DecodeBody(b.Encode())
	require.NoError(t, err)
	assert.Equal(t, b, got)
	s := sampleState()
	s.GateTag, s.Hand, s.PutOff = `"etag"`, true, &record.PutOff{From: 11, To: 12}
	s.Calls, s.Watched = 15, &record.Watched{Succeeded: instant, Armed: true}
	s.Await = &record.Await{Key: "k", Until: 13, Then: "fail", Fence: 14, From: "approval", Question: "may it?", Answer: `{"type":"object"}`}
	gotState, err := record.DecodeState(s.Encode())
	require.NoError(t, err)
	assert.Equal(t, s.GateTag, gotState.GateTag)
	assert.Equal(t, s.PutOff, gotState.PutOff)
	assert.Equal(t, s.Await, gotState.Await)
	assert.Equal(t, s.Watched, gotState.Watched)
	never := record.State{Watched: &record.Watched{Armed: true}}
	gotNever, err := record.DecodeState(never.Encode())
	require.NoError(t, err)
	assert.Equal(t, never.Watched, gotNever.Watched, "a task that is watched and has not succeeded")
	assert.True(t, gotState.Hand)
	assert.Equal(t, s.Calls, gotState.Calls)
	f := sampleFinished()
	f.Origin, f.Callback = b.Origin, "callback:1"
	gotFinished, err := record.DecodeFinished(f.Encode())
	require.NoError(t, err)
	assert.Equal(t, f, gotFinished)
	p := record.Profile{
		Revision: 7, Zone: "Europe/Berlin", Quiet: []string{"22:00\x0007:00\x00mon"}, Urgent: true, Deleted: true, Labels: []string{"l\x00v"}, Replanning: instant, Limits: []string{"{}"}, Budgets: []string{"{1}"}, Quota: "{2}", Tenant: "acme",
	}
	gotProfile, err := record.DecodeProfile(p.Encode())
	require.NoError(t, err)
	assert.Equal(t, p, gotProfile)
	sender := record.Sender{How: "page", By: "ann", Question: "?"}
	assert.Equal(t, sender, record.DecodeSender(sender.Encode()))
	noted := sampleHold
	noted.Note = "n"
	assert.Equal(t, noted, record.DecodeHold(noted.Encode()))
	for _, sample := range []any{b, s, f, *b.Origin, noted, sampleFailure, p, sender, *s.Await} {
		v := reflect.ValueOf(sample)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() {
				assert.False(t, v.Field(i).IsZero(), "the sample %T has nothing in %s: it proves nothing", sample, f.Name)
			}
		}
	}
}

// A binary of the next version may store fields that this one does not know.
func TestUnknownFieldsArePassedOver(t *testing.T) {
	t.Parallel()
	b := record.Body{Group: "g"}
	data := append(b.Encode(), 0x90, 0x03, 0x0e)      // field 200, a number
	data = append(data, 0x93, 0x03, 3, 'n', 'e', 'w') // field 201, bytes
	got, err := record.DecodeBody(data)
	require.NoError(t, err)
	assert.Equal(t, b, got)
	s, err := record.DecodeState([]byte{11<<1 | 1, 3, 4 << 1, 0x86, 0x01}) // a run with an outcome of later
	require.NoError(t, err)
	assert.Equal(t, []record.Run{{Outcome: "success"}}, s.Runs.All())
}

func TestMalformedRecordsAreErrors(t *testing.T) {
	t.Parallel()
	for _, data := range [][]byte{{0x80}, {0x02}, {0x03}, {0x03, 0x80}, {0x03, 5, 'a'}, {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}} {
		_, err := record.DecodeBody(data)
		require.ErrorContains(t, err, "malformed record", "%x", data)
		assert.Contains(t, record.DecodeHold(data).Reason, "malformed record", "who asks sees that something is held")
		assert.Contains(t, record.DecodeFailure(data).Error, "malformed record")
	}
	_, err := record.DecodeState([]byte{11<<1 | 1, 1, 0x80})
	require.ErrorContains(t, err, "malformed record", "of a run")
}

func TestNothingIsStoredOfAnEmptyState(t *testing.T) {
	t.Parallel()
	assert.Nil(t, (&record.State{}).First())
}

func FuzzDecode(f *testing.F) {
	b, s, r := sampleBody(), sampleState(), sampleFinished()
	f.Add([]byte{1<<1 | 1, 0}) // what we never write: a field with nothing in it
	f.Add(b.Encode())
	f.Add(s.Encode())
	f.Add(r.Encode())
	f.Fuzz(func(t *testing.T, data []byte) {
		if b, err := record.DecodeBody(data); err == nil {
			again, err := record.DecodeBody(b.Encode())
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%q", b.Payload), fmt.Sprintf("%q", again.Payload))
		}
		if s, err := record.DecodeState(data); err == nil {
			_, err := record.DecodeState(s.Encode())
			require.NoError(t, err)
		}
		_, _ = record.DecodeFinished(data)
		_, _ = record.DecodeHold(data), record.DecodeFailure(data)
	})
}
