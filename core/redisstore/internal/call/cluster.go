package call

// Nodes of a Redis Cluster: which has which partition, and calls to several of them at the same time.

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// longestNode is how long a pull waits for a node of a cluster while others may have answered. It is far more than a live
// node needs. Tasks that a claim takes after that stay leased until the lease runs out.
// It bounds a node's silence by less than a second, as docs/guarantees.md
// promises for the agents of the other nodes.
const longestNode = 800 * time.Millisecond

// reloadPause is the least time between two requests of a process for the cluster's slots.
// Without the pause every call to a dead node would ask, and the nodes
// that live would answer little else.
const reloadPause = 500 * time.Millisecond

// cluster is the additional state of a store on a Redis Cluster; nil on a single server.
type cluster struct {
	// Client is the same client as that of its database, with the methods that only a cluster has.
	Client  *redis.ClusterClient
	loaded  atomic.Int64  // when it was last asked for the slots of its nodes, Unix ms
	Longest time.Duration // that a pull waits for a node: longestNode but in tests
}

// Nothing is a key that no partition has. Given to a script along with the others it makes a node of a cluster that has a part
// of a slot only, while the slot is moved, refuse the script with TRYAGAIN before it begins: on the one side of the move as on
// the other. Without it a script would stop halfway at the first key that no longer exists, or write one whose old
// value is still to come.
const Nothing = "nothing"

// keysOf are the keys that a call is given.
func (d *DB) keysOf(c *Call) []string {
	p := d.Parts[c.Partition]
	keys := p.Keys(c.Script.Keys)
	// On a single server slots do not move, and a key fewer saves each call its argument.
	if d.Cluster != nil {
		keys = append(keys, p.Key(Nothing))
	}
	return keys
}

// Masters is how many masters of a cluster share the slots; zero on a single server.
func (d *DB) Masters(ctx context.Context) (int, error) {
	if d.Cluster == nil {
		return 0, nil
	}
	var n atomic.Int64
	err := d.Cluster.Client.ForEachMaster(ctx, func(context.Context, *redis.Client) error {
		n.Add(1)
		return nil
	})
	if err != nil {
		return 0, Wrap(VerbLook, err)
	}
	return int(n.Load()), nil
}

// Learn asks for the nodes of the slots if an error may mean that they have moved. By itself go-redis asks once a minute
// and when a node answers that it has not got a slot, but not when a node is dead. The answer comes later, unless a
// node has reported the move itself: the call that failed is repeated anyway.
// A nil cluster is a single server, which has nothing to learn: callers
// do not have to ask which they have.
func (c *cluster) Learn(ctx context.Context, err error) {
	if c == nil || err == nil || !Passing(err) && !errors.Is(err, context.DeadlineExceeded) {
		return
	}
	if redis.HasErrorPrefix(err, "MOVED") { // it is known by now, and go-redis would not ask again as soon as that
		_ = c.Client.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
		return
	}
	now := time.Now().UnixMilli() //nolint:forbidigo // between calls to this client; no task depends on it
	// Of all calls that fail at the same time the one that wins the swap asks; the others rely on it.
	if last := c.loaded.Load(); now-last >= reloadPause.Milliseconds() && c.loaded.CompareAndSwap(last, now) {
		c.Client.ReloadState(ctx)
	}
}

// group is the part of a call for one node: the places of its parts among all.
type group struct {
	Node redis.UniversalClient // the whole client where there is one server only
	// Members are indexes into the caller's own slice, so that replies can be put where they belong.
	Members []int
}

// ByNode splits n parts of a call, each with a partition, by the nodes that have them. Sent on its own, the part of a node that
// is away spoils no other: go-redis fails a pipeline as a whole when its time is up, and in a cluster repeats one as a whole,
// with scripts that have run, when its first command has failed.
func (d *DB) ByNode(ctx context.Context, n int, partition func(i int) int) []group {
	if d.Cluster == nil {
		return []group{{Node: d.Client, Members: upTo(n)}}
	}
	var groups []group
	// Nodes are compared by their client: go-redis keeps one for each address,
	// so equal pointers are equal nodes.
	at := map[redis.UniversalClient]int{}
	for i := range n {
		node := d.Client // whose error reports it if no known node can be asked
		// Every key of a partition has the same hash tag, so any of them finds the node.
		// agenda is one that every partition has.
		if master, err := d.Cluster.Client.MasterForKey(ctx, d.Parts[partition(i)].Key("agenda")); err == nil {
			node = master
		}
		g, known := at[node]
		if !known {
			g = len(groups)
			at[node] = g
			groups = append(groups, group{Node: node})
		}
		groups[g].Members = append(groups[g].Members, i)
	}
	return groups
}

// upTo are the numbers from 0 to n-1.
func upTo(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// AtOnce calls f with 0 to n-1, side by side, and returns when all have returned.
func AtOnce(n int, f func(i int)) {
	var others sync.WaitGroup
	// The first part runs in the caller's own goroutine: a single server,
	// which has one part only, starts none.
	for i := 1; i < n; i++ {
		others.Go(func() { f(i) })
	}
	if n > 0 {
		f(0)
	}
	others.Wait()
}

// patienceKey is the key of how long a caller waits for one answer of Redis.
type patienceKey struct{}

// WithPatience is a context whose calls fail when Redis has not answered one of them for that long, all its attempts together.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return context.WithValue(ctx, patienceKey{}, d)
}

// patient bounds a call by the patience of its caller, if that has said one.
func patient(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Value(patienceKey{}).(time.Duration); ok {
		return context.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}

// Impatience bounds each command by the patience of its caller.
type Impatience struct{}

// DialHook does not change dialling, which is part of a command.
func (Impatience) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook bounds a command.
func (Impatience) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		ctx, cancel := patient(ctx)
		defer cancel()
		return next(ctx, cmd)
	}
}

// ProcessPipelineHook bounds a pipeline.
func (Impatience) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		ctx, cancel := patient(ctx)
		defer cancel()
		return next(ctx, cmds)
	}
}

// Patience bounds a call: of a caller who has said how long it waits, and of a pull to a node of a cluster.
func (d *DB) Patience(ctx context.Context, verb string) (context.Context, context.CancelFunc) {
	if ctx.Value(patienceKey{}) != nil {
		return patient(ctx)
	}
	if d.Cluster == nil {
		return ctx, func() {}
	}
	// Submits, reads and commands of operators are not bounded here: a person or a program waits for
	// that very answer, and sets a deadline of its own.
	switch verb {
	case VerbLook, VerbTurn, VerbExtend, VerbPermit:
		return context.WithTimeout(ctx, d.Cluster.Longest)
	}
	return ctx, func() {}
}

// The verbs of a pull and of a submit, as errors name them.
const (
	VerbSubmit  = "submit"
	VerbLook    = "look"
	VerbControl = "control"
	VerbClaim   = "claim"
	VerbSettle  = "settle"
	VerbPermit  = "permit"
	VerbTurn    = "turn" // each of its calls has the name of its script
	VerbExtend  = "extend"
)
