package worker_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// halfAway is a server a part of whose store is away: it knows nothing of run a until run b is returned, and then takes that too.
type halfAway struct {
	lent  []string
	short bool          // the next answer to a return leaves out all runs
	b     chan struct{} // closed when run b is returned
	again chan struct{} // closed when run a is returned again
	asked int           // about run a
}

func (s *halfAway) ClaimRuns(ctx context.Context, _ operation.Claim) (lent operation.Lent, err error) {
	if s.lent == nil { // a worker that asks for nothing else waits
		<-ctx.Done()
		return lent, ctx.Err()
	}
	for _, id := range s.lent {
		lent.Runs = append(lent.Runs, json.RawMessage(lentRun(id)))
	}
	s.lent = nil
	return lent, nil
}

func (*halfAway) KeepRuns(_ context.Context, keep operation.Keep) (kept operation.Kept, err error) {
	for range keep.Runs {
		kept.Runs = append(kept.Runs, operation.KeptRun{Kept: true})
	}
	return kept, nil
}

func (s *halfAway) ReturnRuns(ctx context.Context, ends operation.Return) (out operation.Returned, err error) {
	if s.short {
		s.short = false
		return out, nil
	}
	for _, data := range ends.Runs {
		var run struct{ Ticket string }
		if err := json.Unmarshal(data, &run); err != nil {
			return out, err
		}
		as := operation.ReturnedRun{Ended: operation.EndedCompleted}
		switch {
		case run.Ticket == "b":
			close(s.b)
		case s.asked == 0:
			s.asked++
			as.Ended = operation.EndedUnknown
		default:
			close(s.again)
			select {
			case <-s.b:
			case <-ctx.Done():
				return out, ctx.Err()
			}
		}
		out.Runs = append(out.Runs, as)
	}
	return out, nil
}

// A run that the server has lent when the worker stops, and whose answer is on the way, is given back.
func TestALoanThatIsOnTheWay(t *testing.T) {
	t.Parallel()
	asked, back := make(chan struct{}), make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		if r.URL.Path == "/v1/work/return" {
			back <- string(body)
			_, _ = io.WriteString(w, `{"runs":[{"ended":"released"}]}`)
			return
		}
		close(asked)
		<-r.Context().Done() // the worker stops, and this server has decided before
		_, _ = io.WriteString(w, `{"runs":[`+lentRun("a")+`],"next_due_at":null}`)
	}))
	defer server.Close()
	client, err := remote.New(remote.Config{URL: server.URL})
	require.NoError(t, err)
	defer client.Close()
	ctx, stop := context.WithCancel(t.Context())
	go func() {
		<-asked
		stop()
	}()
	require.NoError(t, worker.Run(ctx, worker.Config{
		Server: remote.Lending{Client: client}, Kinds: []string{"k"}, Concurrency: 1, Lease: time.Minute, Grace: time.Minute, Name: "w", Logger: slog.New(slog.DiscardHandler),
		Handler: func(context.Context, *core.Task[json.RawMessage]) error {
			t.Error("it was started")
			return nil
		},
		OnEvent: func(core.Event) {},
	}))
	require.Len(t, back, 1, "it was left to its lease")
	assert.JSONEq(t, `{"runs":[{"ticket":"a","release":true}],"claim":null}`, <-back)
}

// lentRun is a run as a server lends it.
func lentRun(id string) string {
	return fmt.Sprintf(
		`{"agent_id":"ada","id":%q,"kind":"k","due_at":"2026-01-01T00:00:00Z","occurrence":"2026-01-01T00:00:00Z","submitted_at":"2026-01-01T00:00:00Z","ticket":%[1]q,"call":1}`, id)
}

// A run of which the server knows nothing does not hold up another, and an answer that leaves runs out is none.
func TestAnEndThatIsUnknown(t *testing.T) {
	t.Parallel()
	s := &halfAway{lent: []string{"a", "b"}, short: true, b: make(chan struct{}), again: make(chan struct{})}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	ended := make(chan string, 2)
	err := worker.Run(ctx, worker.Config{
		Server: s, Kinds: []string{"k"}, Concurrency: 2, Lease: time.Minute, Grace: time.Second, Name: "w", Logger: slog.New(slog.DiscardHandler),
		Handler: func(_ context.Context, r *core.Task[json.RawMessage]) error {
			if r.ID == "b" { // it ends when run a is being returned again
				<-s.again
			}
			return nil
		},
		OnEvent: func(e core.Event) {
			if ended <- e.ID; len(ended) == 2 {
				stop()
			}
		},
	})
	require.NoError(t, err)
	assert.Equal(t, 1, s.asked)
}
