// Package call calls scripts at a Redis by their hash, each at the node that has its partition, and again after a failure that may pass.
package call

// How scripts are called by their hash, and called again after a failure that may pass.

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/script"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// DB is a Redis with the partitions of a prefix. It calls scripts there.
type DB struct {
	// Client has a pool of connections, shared by all verbs.
	Client  redis.UniversalClient
	Scripts script.All
	Parts   []layout.Partition
	Cluster *cluster // nil if all partitions are on one server, so that one command can read keys of several
	// callers names the calls whose answers Redis keeps.
	callers  *callers
	Listened *atomic.Int64 // 1 if an answer has shown that events have subscribers
}

// New is that of a client; its partitions are set when they are known.
func New(client redis.UniversalClient, scripts script.All) DB {
	d := DB{Client: client, Scripts: scripts, callers: newCallers(), Listened: new(atomic.Int64)}
	// Partitions are on several nodes only in a cluster; Sentinel and a single server have one master.
	if client, ok := client.(*redis.ClusterClient); ok {
		d.Cluster = &cluster{Client: client, Longest: longestNode}
	}
	return d
}

// Call is one run of a script in a partition.
// Its arguments are made once, and sent again unchanged if it is repeated.
type Call struct {
	Script    *script.Script
	Partition int
	Args      []any
	caller    caller
	repeated  bool // it was sent before, and may have been carried out
	Later     bool // it is not sent: another takes its place
	// Full is set for a plain script: the call to send instead if that finds something out of the ordinary.
	Full func() Call
	// Plain is the memory of its partition for such scripts.
	Plain *plainness
}

// argv are the arguments of the script.
func (c *Call) argv() []any {
	// The caller is added for each attempt, as whether a call is a repetition changes between them.
	if !c.Script.Answers {
		return c.Args
	}
	// Clipped, so that the append copies: another attempt starts from the arguments without a caller.
	return append(slices.Clip(c.Args), c.caller.arg(c.repeated))
}

// failed notes that a call failed. It reports whether it cannot have been carried out, as the server does not know its script.
func (c *Call) failed(err error) bool {
	// NOSCRIPT comes before the script begins, so the call that follows is still
	// the first that can be carried out.
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		return true
	}
	c.repeated = true
	if c.Full != nil { // its answer shows what was carried out already
		c.makeFull()
	}
	return false
}

// Attempts at a call whose answer did not arrive, and the first pause between them: about 20, 40 and 80
// ms, which is short compared with any lease. Every script can be repeated safely: by task id, fence or nonce,
// or as it keeps its last answer to each caller.
const (
	Attempts = 4
	pause    = 20 * time.Millisecond
)

// Run runs calls as RunAll does, and returns the first error.
// It is for verbs whose callers can do nothing with half an answer.
func (d *DB) Run(ctx context.Context, verb string, calls []Call) ([][]any, error) {
	replies, errs := d.RunAll(ctx, verb, calls)
	return replies, cmp.Or(errs...)
}

// RunAll runs calls in one round trip to each node and returns their replies in order, and an error for each that failed, a
// *store.Error. It repeats those that failed in a way that may pass. A failure in one partition stops no other.
func (d *DB) RunAll(ctx context.Context, verb string, calls []Call) ([][]any, []error) {
	// Names are held until the last attempt is over: a repetition must present the name of the first.
	leave := d.callers.enter(calls)
	defer leave()
	e := evaluation{db: d, verb: verb, calls: calls, replies: make([][]any, len(calls)), errs: make([]error, len(calls))}
	todo := make([]int, 0, len(calls))
	for i := range calls {
		if !calls[i].Later {
			todo = append(todo, i)
		}
	}
	e.run(ctx, todo, 1)
	for i, err := range e.errs {
		if err != nil {
			of := verb
			if verb == VerbTurn {
				of = strings.TrimPrefix(calls[i].Script.Name, "plain")
			}
			e.errs[i] = Wrap(of, err)
		}
	}
	return e.replies, e.errs
}

// evaluation is one run of some calls. Each has a place in replies or in errs, which are written side by side.
// It lives for one RunAll, and is shared by the goroutines of all nodes: each
// writes only the places of its own calls.
type evaluation struct {
	db      *DB
	verb    string
	calls   []Call
	replies [][]any
	errs    []error
}

// run runs the calls in todo, by the nodes that have their partitions now, and repeats those whose failure may pass.
// Repeated calls are split by node again, as a partition may have moved to another node in between.
func (e *evaluation) run(ctx context.Context, todo []int, attempt int) {
	groups := e.db.ByNode(ctx, len(todo), func(k int) int { return e.calls[todo[k]].Partition })
	AtOnce(len(groups), func(g int) {
		node, mine := groups[g].Node, make([]int, len(groups[g].Members))
		for i, k := range groups[g].Members {
			mine[i] = todo[k]
		}
		// Each node has a time limit of its own: one that hangs spoils only its own calls.
		ctx, cancel := e.db.Patience(ctx, e.verb)
		defer cancel()
		failed := e.sendAll(ctx, node, mine)
		if odd := e.odd(mine); len(odd) > 0 {
			failed = append(failed, e.sendAll(ctx, node, odd)...)
		}
		if len(failed) == 0 {
			return
		}
		e.db.Cluster.Learn(ctx, e.errs[failed[0]])
		// Final errors stay in errs; those that may pass go into the next attempt.
		again := slices.DeleteFunc(failed, func(i int) bool { return !Passing(e.errs[i]) })
		if len(again) > 0 && attempt < Attempts && Wait(ctx, attempt) {
			e.run(ctx, again, attempt+1)
		}
	})
}

// sendAll sends calls to a node, and those once more whose scripts the server does not have: with their texts. It returns those
// that failed.
func (e *evaluation) sendAll(ctx context.Context, node redis.UniversalClient, todo []int) []int {
	failed, unknown := e.send(ctx, node, todo, false)
	if unknown {
		failed, _ = e.send(ctx, node, failed, true)
	}
	return failed
}

// doer is a node, or a pipeline to one.
// go-redis has no common name for the two.
type doer interface {
	Do(ctx context.Context, args ...any) *redis.Cmd
}

// command is the i-th call as a command, with the whole script or its hash.
// EVALSHA sends 40 characters in place of a script of several KiB; Redis knows the script from the
// first EVAL on, until it restarts or its scripts are flushed.
func (e *evaluation) command(i int, whole bool) []any {
	of, keys, argv := e.calls[i].Script, e.db.keysOf(&e.calls[i]), e.calls[i].argv()
	args := make([]any, 0, 3+len(keys)+len(argv))
	if whole {
		args = append(args, "eval", of.Text(), len(keys))
	} else {
		args = append(args, "evalsha", of.SHA, len(keys))
	}
	for _, key := range keys {
		args = append(args, key)
	}
	return append(args, argv...)
}

// send sends calls to a node, whole or by their hash, once: a client of a whole cluster would repeat all of them for one that
// failed. It returns those that failed, and whether one did because the server does not know its script.
func (e *evaluation) send(ctx context.Context, node redis.UniversalClient, todo []int, whole bool) ([]int, bool) {
	cmds := make([]*redis.Cmd, len(todo))
	// Each method of go-redis that is called by its name brings its code for every sort of client: Do is one for all commands.
	send := func(c doer) {
		for k, i := range todo {
			cmds[k] = c.Do(ctx, e.command(i, whole)...)
		}
	}
	// A pipeline of one command costs allocations that a single command does not.
	if len(todo) == 1 {
		send(node)
	} else {
		// The node's own pipeline, not the cluster's: that one repeats scripts that have run.
		pipe := node.Pipeline()
		send(pipe)
		layout.SendAll(ctx, pipe) // each command holds its own error
	}
	var failed []int
	var unknown bool
	for k, i := range todo {
		reply, err := cmds[k].Slice()
		if e.errs[i] = err; err == nil {
			e.replies[i] = e.db.heard(reply)
			continue
		}
		failed = append(failed, i)
		unknown = e.calls[i].failed(err) || unknown
	}
	return failed, unknown
}

// Wait pauses before another attempt, longer each time and never in step with others; false if ctx ends first.
// Half of the pause is fixed and half is drawn, so that processes that lost the
// same server do not come back together.
func Wait(ctx context.Context, attempt int) bool {
	d := pause << (attempt - 1)
	d = d/2 + rand.N(d)       //nolint:gosec // jitter, not a secret
	timer := time.NewTimer(d) //nolint:forbidigo // between attempts at one call; no task depends on it
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Passing reports whether an error may be gone a moment later.
// It decides only whether to try again: whether the call has been carried out
// is unknown in most of these cases.
func Passing(err error) bool {
	var network net.Error
	// These are the caller's own decisions. They may look like network
	// errors, so they are checked first.
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) {
		return true
	}
	// States of a server or a cluster that end by themselves: a failover, a start, a slot
	// that moves, a script that runs too long.
	for _, prefix := range []string{"MOVED", "ASK", "LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "UNKILLABLE"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

// Wrap is the one place in which errors of Redis become those of core/store: callers see a *store.Error
// or one of its sentinels, and never have to know go-redis.
func Wrap(verb string, err error) error {
	// A script reports the refusal of one of its commands in words, without the prefix.
	if redis.HasErrorPrefix(err, "OOM") || strings.Contains(err.Error(), "OOM command not allowed") {
		err = store.ErrFull
	}
	// It passes, but not within the attempts of one call: moving a large slot
	// takes seconds. The caller retries.
	if redis.HasErrorPrefix(err, "TRYAGAIN") || redis.HasErrorPrefix(err, "ASK") {
		err = fmt.Errorf("the cluster is moving the slot of these agents to another node: retry the same request (%w)", err)
	}
	return &store.Error{Verb: verb, Err: err}
}

// heard is the answer of a script, whose time is negative if events have subscribers.
func (d *DB) heard(reply []any) []any {
	if len(reply) > 0 && layout.Number(reply[0]) < 0 {
		reply[0] = -layout.Number(reply[0])
		d.Listened.Store(1)
	}
	return reply
}

// PartitionOf is where all tasks of an agent are. It never changes for a prefix.
func (d *DB) PartitionOf(agent string) int { return store.PartitionOf(agent, len(d.Parts)) }

// Denied reports whether the user may not run a command. The first is a server's own refusal, the others how scripts of Redis 6.2 and 7.0, and of
// later ones and Valkey, report it.
func Denied(err error) bool {
	return slices.ContainsFunc([]string{"NOPERM", "can't run this command", "ACL failure in script"}, func(text string) bool {
		return strings.Contains(err.Error(), text)
	})
}

// Time is Redis' time.
func (d *DB) Time(ctx context.Context, verb string) (moment.Millis, error) {
	now := d.Client.Do(ctx, "TIME")
	if err := now.Err(); err != nil {
		return 0, Wrap(verb, err)
	}
	return layout.ParseTime(now), nil
}
