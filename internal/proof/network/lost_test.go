package network_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// loser loses one answer: the k-th of a script, or of a command by its name.
type loser struct {
	mu    sync.Mutex
	of    string
	after int // how many answers of it arrive before
	lost  bool
	seen  map[string]int // how often each was answered
}

var errCut = errors.New("read unix: connection reset by peer")

// verb is what a command is: the hash of its script, or its name.
func verb(cmd redis.Cmder) string {
	if args := cmd.Args(); len(args) > 1 && (cmd.Name() == "evalsha" || cmd.Name() == "eval") {
		return fmt.Sprint(args[1])
	}
	return cmd.Name()
}

// loses notes an answer, and reports whether it is the one to lose.
func (l *loser) loses(cmd redis.Cmder) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := verb(cmd)
	l.seen[v]++
	if v != l.of || l.lost || l.seen[v] <= l.after {
		return false
	}
	l.lost = true
	return true
}

func (*loser) DialHook(next redis.DialHook) redis.DialHook { return next }

func (l *loser) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if l.loses(cmd) {
			cmd.SetErr(errCut)
			return errCut
		}
		return err
	}
}

func (l *loser) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		for i, cmd := range cmds {
			if l.loses(cmd) { // and with it those behind
				for _, lost := range cmds[i:] {
					lost.SetErr(errCut)
				}
				return errCut
			}
		}
		return err
	}
}

// Whichever answer of whichever verb is lost, every task ends as it has to, is started again only for a reason, and nothing is left.
func TestTheKthAnswerOfEachVerbIsLost(t *testing.T) { //nolint:tparallel // its parts come one after the other
	t.Parallel()
	srv := redistest.Start(t)
	all := &loser{seen: map[string]int{}}
	p := platformOn(t, srv.Addr, "all:", 1, all)
	p.ended("a", p.use("a"))
	verbs := slices.Collect(func(yield func(string) bool) {
		all.mu.Lock()
		defer all.mu.Unlock()
		for v := range all.seen {
			if !yield(v) {
				return
			}
		}
	})
	require.Greater(t, len(verbs), 10, "%v", verbs)

	var cases [][2]int
	for v := range verbs {
		for k := range 20 {
			cases = append(cases, [2]int{v, k})
		}
	}
	rand.Shuffle(len(cases), func(i, j int) { cases[i], cases[j] = cases[j], cases[i] })
	cases = cases[:min(len(cases), proof.Size(25, len(cases)))]
	lost, again := 0, 0
	for i, c := range cases { //nolint:paralleltest // as above
		t.Run(fmt.Sprintf("%.6s/%d", verbs[c[0]], c[1]+1), func(t *testing.T) {
			l := &loser{of: verbs[c[0]], after: c[1], seen: map[string]int{}}
			p := platformOn(t, srv.Addr, fmt.Sprintf("p%d:", i), 1, l)
			for agent := range 3 {
				name := fmt.Sprintf("a%d", agent)
				again += p.ended(name, p.use(name))
			}
			p.clean()
			if l.lost {
				lost++
			}
		})
		if t.Failed() {
			break
		}
	}
	assert.Positive(t, lost)
	proof.Figure(t, "%d of %d places where an answer was lost, over %d verbs: 0 tasks lost or stuck, %d second starts, each with its reason", lost, len(cases), len(verbs), again)
}
