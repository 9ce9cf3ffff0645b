package history_test

// The recorder: what clients and workers asked about each task, and what they were told.

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// recorder has the histories of all tasks, by their agents: each agent has one.
type recorder struct {
	begun  time.Time
	agents string        // the prefix of those whose histories it keeps
	late   time.Duration // how long after its call has returned an operation may take effect whose outcome nobody knows
	calls  sync.RWMutex  // held by workers while they call: nothing is read before what they have done is recorded

	back chan struct{} // closed once Redis is there again, or if it never goes

	mu     sync.Mutex
	down   time.Time // when Redis was killed; zero: not yet
	up     time.Time // when it was there again; zero: not yet
	of     map[string][]porcupine.Operation
	leased map[int64][]string // by fence: the agents of a claim
}

func newRecorder(agents string, late time.Duration) *recorder {
	return &recorder{begun: time.Now(), agents: agents, late: late, back: make(chan struct{}), of: map[string][]porcupine.Operation{}, leased: map[int64][]string{}}
}

// inSocket is how long a command may wait in a socket after its caller had no more time. Redis is killed, not frozen, so that nothing
// waits for long.
const inSocket = 2 * time.Second

// add notes an operation that was called at some time and has just returned.
func (r *recorder) add(agent string, client int, called time.Time, in input, out answer) {
	if !strings.HasPrefix(agent, r.agents) {
		return // a task of a round that is over
	}
	now := time.Now()
	in.called, out.returned = millis(called), millis(now)
	ret := now.Sub(r.begun).Nanoseconds()
	if out.code == core.CodeUnavailable && (in.verb == get || in.verb == extend) {
		return // it tells nothing
	}
	if out.code == core.CodeUnavailable && !in.again {
		ret += r.late.Nanoseconds()
		out.returned += r.late.Milliseconds()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of[agent] = append(r.of[agent], porcupine.Operation{
		ClientId: client, Input: in, Output: out, Call: called.Sub(r.begun).Nanoseconds(), Return: ret,
	})
}

// unknown notes a claim that was not answered, or that was sent again: it may have leased any task.
func (r *recorder) unknown(client int, called time.Time, again bool) {
	r.mu.Lock()
	agents := slices.Collect(maps.Keys(r.of))
	r.mu.Unlock()
	for _, agent := range agents {
		r.add(agent, client, called, input{verb: claim, again: again}, answer{code: core.CodeUnavailable})
	}
}

// worker is the store of a worker: it records what the scheduler was told, and loses some answers on the way.
type worker struct {
	store.Store

	r      *atomic.Pointer[recorder]
	client int
	lost   sync.Map // the runs for which a settlement was not answered
	loses  float64  // the share of claims and settlements whose answers the scheduler never gets
}

var errLost = &store.Error{Verb: "claim", Err: errors.New("the answer was lost")}

// numbered is the payload of every task: the number of its definition.
type numbered struct {
	N int `json:"n"`
}

// outage does something to Redis that it comes back from.
func (r *recorder) outage(hit func()) {
	r.mu.Lock()
	r.down = time.Now()
	r.mu.Unlock()
	hit()
	r.mu.Lock()
	r.up = time.Now()
	r.mu.Unlock()
}

// sentAgain reports whether a claim that began at some time and has just ended may have been sent twice, as Redis was away
// meanwhile: it took effect the first time, and was answered with what had been ordered until the second time. Was all that it had
// taken deleted until then, it took effect twice.
func (r *recorder) sentAgain(called time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.down.IsZero() && (r.up.IsZero() || called.Before(r.up.Add(time.Second))) && time.Since(called) > 5*time.Millisecond
}

// Turn is made of Settle and Claim.
func (w *worker) Turn(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) ([]store.Settled, []store.Claim, error) {
	return store.InTurn(ctx, w, runs, requests)
}

// Claim records whom it has given work.
func (w *worker) Claim(ctx context.Context, requests []store.ClaimRequest) ([]store.Claim, error) {
	r, called := w.r.Load(), time.Now()
	r.calls.RLock()
	defer r.calls.RUnlock()
	claims, err := w.Store.Claim(ctx, requests)
	// A claim that took long may have taken tasks of the next round.
	if next := w.r.Load(); next != r {
		next.calls.RLock()
		defer next.calls.RUnlock()
		w.note(next, called, claims, err)
	}
	w.note(r, called, claims, err)
	if err == nil && rand.Float64() < w.loses {
		return nil, errLost
	}
	return claims, err
}

// note records the answer to a claim, as far as it is about a recorder's agents.
func (w *worker) note(r *recorder, called time.Time, claims []store.Claim, err error) {
	again := r.sentAgain(called)
	if err != nil || again {
		r.unknown(w.client, called, err == nil)
	}
	for i := range claims {
		if claims[i].Err != nil {
			r.unknown(w.client, called, false)
		}
		for _, t := range claims[i].Tasks {
			fence := int64(t.Fence)
			r.mu.Lock()
			if !slices.Contains(r.leased[fence], t.Agent) {
				r.leased[fence] = append(r.leased[fence], t.Agent)
			}
			r.mu.Unlock()
			r.add(t.Agent, w.client, called, input{verb: claim, fence: fence, again: again}, answer{def: definition(t.Body), cancelled: t.Cancelled})
		}
	}
}

// definition finds the number in the body of a task.
func definition(body []byte) int {
	for i := range body {
		if body[i] != '{' {
			continue
		}
		var n numbered
		if json.NewDecoder(newReader(body[i:])).Decode(&n) == nil && n.N > 0 {
			return n.N
		}
	}
	return 0
}

// Settle records how runs ended.
func (w *worker) Settle(ctx context.Context, runs []store.Settlement) ([]store.Settled, error) {
	r, called := w.r.Load(), time.Now()
	r.calls.RLock()
	defer r.calls.RUnlock()
	settled, err := w.Store.Settle(ctx, runs)
	for i := range runs {
		out := answer{}
		switch {
		case err != nil:
			out.code, out.why = core.CodeUnavailable, err
		case errors.As(settled[i].Err, new(*store.Error)):
			out.code, out.why = core.CodeUnavailable, settled[i].Err
		default:
			out.why = settled[i].Err
		}
		_, again := w.lost.Load(runs[i].Run)
		r.add(runs[i].Agent, w.client, called, input{
			verb: settle, fence: int64(runs[i].Fence), settle: runs[i].Verb, renewed: runs[i].Renewed, again: again,
		}, out)
	}
	if err == nil && rand.Float64() < w.loses {
		err = errLost
	}
	for i := range runs {
		if err != nil || errors.As(settled[i].Err, new(*store.Error)) {
			w.lost.Store(runs[i].Run, true)
		}
	}
	return settled, err
}

// Extend records which leases last longer.
func (w *worker) Extend(ctx context.Context, leases []store.Extension) ([]store.Extended, error) {
	r, called := w.r.Load(), time.Now()
	r.calls.RLock()
	defer r.calls.RUnlock()
	extended, err := w.Store.Extend(ctx, leases)
	for i := range leases {
		out := answer{}
		switch {
		case err != nil || extended[i].Err != nil:
			out.code = core.CodeUnavailable
		case !extended[i].Held:
			out.code = core.CodeLeaseLost
		}
		fence := int64(leases[i].Fence)
		r.mu.Lock()
		agents := r.leased[fence]
		r.mu.Unlock()
		for _, agent := range agents {
			r.add(agent, w.client, called, input{verb: extend, fence: fence}, out)
		}
	}
	return extended, err
}
