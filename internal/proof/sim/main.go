// Command sim plays histories of duly from seeds: go run ./internal/proof/sim -seed 7 -n 1000 -trace.
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof/sim/shrink"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
)

// The histories run inside of testing.Main, since a bubble of testing/synctest needs a test. It exits
// with 1 if a history breaks a promise.
func main() {
	seed := flag.Uint64("seed", 1, "the first seed")
	n := flag.Uint64("n", 1, "how many seeds, one after the other")
	story := flag.Bool("trace", false, "tell the story of each history")
	backend := flag.String("store", "memory", "the store: memory, folder or redis")
	shrinks := flag.Bool("shrink", true, "look for the smallest history that fails in the same way")
	say := flag.Bool("say", false, "say which seed is played next, for whoever wants to know which one has ended the program")
	limit := flag.Duration("for", 0, "stop after this long")
	debug.SetGCPercent(800) // a history leaves little behind
	testing.Init()
	flag.Parse()
	s := &session{seed: *seed, n: *n, story: *story, shrink: *shrinks, say: *say, limit: *limit, out: os.Stdout, began: time.Now()}
	testing.Main(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "sim", F: func(t *testing.T) { //nolint:thelper // it is the test
		s.run(t, *backend)
		if s.failed {
			t.Fail()
		}
	}}}, nil, nil)
}

// session is one run of the program.
// It stops at the first history that fails: later seeds would most often show the same fault.
type session struct {
	seed, n            uint64
	story, shrink, say bool
	limit              time.Duration
	out                *os.File
	began              time.Time
	failed             bool
	steps, starts      int
	played             uint64
}

// A limit of time is looked at between histories, each of which takes milliseconds. What the mutants
// program reads are the lines "playing" and "seed".
func (s *session) run(t *testing.T, backend string) {
	t.Helper()
	open := stores.Memory
	switch backend {
	case "redis":
		open = stores.Redis(t)
	case "folder":
		open = stores.Folder(t)
	}
	for seed := s.seed; seed < s.seed+s.n; seed++ {
		if s.limit > 0 && time.Since(s.began) > s.limit {
			break
		}
		if s.say {
			_, _ = fmt.Fprintln(s.out, "playing", seed)
		}
		r := world.Play(t, world.PlanOf(seed), open, s.story)
		s.played++
		s.steps += r.Steps
		s.starts += r.Starts
		if s.story {
			fmt.Fprint(s.out, r.Story)
		}
		if r.Breach != nil {
			s.failed = true
			fmt.Fprintf(s.out, "seed %d: %v\n", seed, r.Breach)
			if s.shrink {
				small := shrink.History(t, world.PlanOf(seed), open)
				fmt.Fprintf(s.out, "the smallest history that fails in the same way:\n%s\n%v\n", small.Story, small.Breach)
			}
			break
		}
	}
	took := time.Since(s.began)
	fmt.Fprintf(s.out, "%d histories in %s (%.0f a second), %d steps, %d runs\n", s.played, took.Round(time.Millisecond), float64(s.played)/took.Seconds(), s.steps, s.starts)
}
