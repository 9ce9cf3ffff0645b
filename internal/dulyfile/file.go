// Package dulyfile reads duly.yaml: its keys, their bounds and defaults, and what it makes of them: the settings of a scheduler, its
// handlers and its tasks.
package dulyfile

import (
	"cmp"
	"context"
	"crypto/sha256"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/heat"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// File is what the file says. What it leaves out is zero.
// Its zero value is a file that says nothing, which makes sense: a daemon with defaults.
type File struct {
	Redis        redisstore.Config
	Store        string        // where tasks are kept without a Redis: memory, or file: and a folder
	Fsync        time.Duration // how often what is written in a folder is made to last; before each answer if zero
	Name         string        // of the process, in the history of tasks
	Concurrency  int
	Urgent       int           // slots; none if negative
	Ahead        time.Duration // how long before its time a task may be claimed; never if negative
	MaxAbandoned int
	Serial       core.Serial
	MaxCrashes   int
	MaxDepth     int
	MaxSpawned   int
	Lease        time.Duration
	HTTP         string // address of the API
	Console      Console
	TraceURL     string  // where the console leads to for the trace of a task, with {trace_id}
	StoreShare   float64 // of a credential for some agents; the default if zero, no bound if negative
	TokenEnv     string  // the variable that holds the tokens of the API
	Tokens       []Credential
	Senders      []Sender
	Hooks        []Hook
	Limits       []core.Limit
	Budgets      []core.Budget
	Defaults     Defaults
	Owner        string // of the tasks; none if empty
	Agents       []Agent
	MemOS        *MemOSStream // nil if no streams are read
	A2A          *A2A         // nil if agents take no messages of A2A
	Approvals    *Approvals   // nil without approvals
	Callbacks    *Callbacks   // nil if no task has a callback
	Alarm        *Alarm       // nil if no outside service is asked to call
	Heat         *heat.Policy // nil without one
	Handlers     []Handler
	Tasks        []Task

	sum      [sha256.Size]byte // of its text
	bindings []binding
	secrets  []string // the variables that contain those of bindings and callers
}

// mostPartitions is what a store takes.
// redisstore has the same bound, and does not export it.
const mostPartitions = 1024

// Parse reads a file, of which name is the name in errors, and checks everything that can be checked without a store. Its error is an
// *[Error]. Defaults that are given count instead of those of the file. Targets are those of vendors that the program is built with.
// A task is checked by submitting it to a store in memory, so that a file that parses can be applied.
func Parse(ctx context.Context, name string, data []byte, given Defaults, vendors ...contract.Target) (*File, error) {
	root, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	f := &File{sum: sha256.Sum256(data)}
	if err := f.read(ctx, root, given, vendors); err != nil {
		return nil, err
	}
	return f, f.tryTasks(ctx)
}

// read reads the keys of the whole file. It reads handlers before tasks, in any
// order of the file, as tasks need them.
func (f *File) read(ctx context.Context, root place, given Defaults, vendors targets) error {
	var limits, budgets, agents, handlers, tasks, bindings, tokens, senders, inbound, memos, langgraph, letta, agent2agent, approvals, callbacks, alarm, busy place
	keep := func(into *place) reader { return func(p place) error { *into = p; return nil } }
	if err := root.read(map[string]reader{
		"redis": text(&f.Redis.URL), "store": text(&f.Store), "fsync": readFsync(&f.Fsync), "prefix": text(&f.Redis.Prefix), "partitions": integer(&f.Redis.Partitions),
		"redis_ca": text(&f.Redis.CAFile), "redis_cert": text(&f.Redis.CertFile), "redis_key": text(&f.Redis.KeyFile),
		"retention": duration(&f.Redis.Retention), "kept": integer(&f.Redis.Kept), "kept_bytes": integer(&f.Redis.KeptBytes),
		"max_tasks": integer(&f.Redis.MaxTasks), "max_bytes": integer(&f.Redis.MaxBytes),
		"name": text(&f.Name), "concurrency": integer(&f.Concurrency), "serial": text((*string)(&f.Serial)),
		"urgent_slots": orNone(&f.Urgent), "ahead": durationOrNone(&f.Ahead), "max_abandoned": atLeastOne(&f.MaxAbandoned),
		"max_crashes": integer(&f.MaxCrashes), "max_depth": whole(&f.MaxDepth), "max_spawned": whole(&f.MaxSpawned), "lease": duration(&f.Lease), "http": text(&f.HTTP), "console": readConsole(&f.Console, &f.TraceURL), "store_share": share(&f.StoreShare),
		"token_env": text(&f.TokenEnv), "limits": keep(&limits), "budgets": keep(&budgets), "handlers": keep(&handlers), "tasks": keep(&tasks), "bindings": keep(&bindings),
		"tokens": keep(&tokens), "senders": keep(&senders), "hooks": keep(&inbound), "memos": keep(&memos), "langgraph": keep(&langgraph), "letta": keep(&letta), "a2a": keep(&agent2agent), "approvals": keep(&approvals), "alarm": keep(&alarm), "heat": keep(&busy), "callbacks": keep(&callbacks),
		"zone": text(&f.Defaults.Zone), "default_agent": text(&f.Defaults.Agent), "agents": keep(&agents), "owner": f.readOwner,
	}); err != nil {
		return err
	}
	f.Defaults = given.over(f.Defaults)
	if n := f.Redis.Partitions; n < 0 || n > mostPartitions || n&(n-1) != 0 {
		return root.of("partitions").fail("must be a power of two up to %d, not %d", mostPartitions, n)
	}
	if err := cmp.Or(f.checkBounds(root), f.checkStore(root)); err != nil {
		return err
	}
	if f.Redis.Retention != 0 && f.Redis.Retention < redisstore.ShortestRetention {
		return root.of("retention").fail("must be at least %s, not %s", redisstore.ShortestRetention, f.Redis.Retention)
	}
	if err := check(root, "", core.Config{
		Concurrency: f.Concurrency, Urgent: f.Urgent, Ahead: f.Ahead, Serial: f.Serial, MaxCrashes: f.MaxCrashes, MaxDepth: f.MaxDepth, MaxSpawned: f.MaxSpawned,
		Default: core.KindConfig{Lease: f.Lease}, Zone: f.Defaults.Zone,
	}); err != nil {
		return err
	}
	if err := f.readBounds(limits, budgets, busy); err != nil {
		return err
	}
	if err := cmp.Or(f.readHandlers(ctx, handlers, vendors), readDoor(f, "langgraph", langgraph), readDoor(f, "letta", letta), readA2A(f, agent2agent)); err != nil {
		return err
	}
	if err := f.readBindings(bindings); err != nil {
		return err
	}
	if err := f.readCallers(tokens, senders, inbound); err != nil {
		return err
	}
	if err := f.readAlarm(alarm); err != nil {
		return err
	}
	if err := f.readAgents(ctx, agents); err != nil {
		return err
	}
	if err := f.readMemOS(memos); err != nil {
		return err
	}
	if err := f.readTold(callbacks, approvals); err != nil {
		return err
	}
	return f.readTasks(tasks)
}

// checkBounds refuses bounds of what is stored that no store takes; zero is the default.
func (f *File) checkBounds(root place) error {
	for _, limit := range []struct {
		key         string
		least, have int
	}{
		{"kept", 1, f.Redis.Kept},
		{"kept_bytes", redisstore.LeastBytes, f.Redis.KeptBytes},
		{"max_tasks", 1, f.Redis.MaxTasks},
		{"max_bytes", redisstore.LeastBytes, f.Redis.MaxBytes},
	} {
		if limit.have != 0 && limit.have < limit.least {
			return root.of(limit.key).fail("must be at least %d, not %d", limit.least, limit.have)
		}
	}
	return nil
}
