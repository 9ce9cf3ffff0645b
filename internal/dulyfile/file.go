// Package dulyfile reads duly.yaml: its keys, their bounds and defaults, and what it makes of them: the settings of a scheduler, its
// handlers and its tasks.
package dulyfile

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// File is what the file says. What it leaves out is zero.
// Its zero value is a file that says nothing, which makes sense: a daemon with defaults.
type File struct {
	Redis        redisstore.Config
	Name         string // of the process, in the history of tasks
	Concurrency  int
	Urgent       int // slots; none if negative
	MaxAbandoned int
	Serial       core.Serial
	MaxCrashes   int
	Lease        time.Duration
	HTTP         string // address of the API
	TokenEnv     string // the variable that holds the tokens of the API
	Handlers     []Handler
	Tasks        []Task
}

// mostPartitions is what a store takes.
// redisstore has the same bound, and does not export it.
const mostPartitions = 1024

// Parse reads a file, of which name is the name in errors, and checks everything that can be checked without a store. Its error is an
// *[Error].
// A task is checked by submitting it to a store in memory, so that a file that parses can be applied.
func Parse(ctx context.Context, name string, data []byte) (*File, error) {
	root, err := parseYAML(name, data)
	if err != nil {
		return nil, err
	}
	f := &File{}
	if err := f.read(root); err != nil {
		return nil, err
	}
	return f, f.tryTasks(ctx)
}

// read reads the keys of the whole file. Handlers come before tasks, whatever their
// order in the file, as tasks need them.
func (f *File) read(root place) error {
	var handlers, tasks place
	keep := func(into *place) reader { return func(p place) error { *into = p; return nil } }
	if err := root.read(map[string]reader{
		"redis": text(&f.Redis.URL), "prefix": text(&f.Redis.Prefix), "partitions": integer(&f.Redis.Partitions),
		"redis_ca": text(&f.Redis.CAFile), "redis_cert": text(&f.Redis.CertFile), "redis_key": text(&f.Redis.KeyFile),
		"retention": duration(&f.Redis.Retention), "kept": integer(&f.Redis.Kept), "kept_bytes": integer(&f.Redis.KeptBytes),
		"max_tasks": integer(&f.Redis.MaxTasks), "max_bytes": integer(&f.Redis.MaxBytes),
		"name": text(&f.Name), "concurrency": integer(&f.Concurrency), "serial": text((*string)(&f.Serial)),
		"urgent_slots": orNone(&f.Urgent), "max_abandoned": atLeastOne(&f.MaxAbandoned),
		"max_crashes": integer(&f.MaxCrashes), "lease": duration(&f.Lease), "http": text(&f.HTTP),
		"token_env": text(&f.TokenEnv), "handlers": keep(&handlers), "tasks": keep(&tasks),
	}); err != nil {
		return err
	}
	if n := f.Redis.Partitions; n < 0 || n > mostPartitions || n&(n-1) != 0 {
		return root.of("partitions").fail("must be a power of two up to %d, not %d", mostPartitions, n)
	}
	if err := f.checkLimits(root); err != nil {
		return err
	}
	if f.Redis.Retention != 0 && f.Redis.Retention < redisstore.ShortestRetention {
		return root.of("retention").fail("must be at least %s, not %s", redisstore.ShortestRetention, f.Redis.Retention)
	}
	if err := check(root, "", core.Config{
		Concurrency: f.Concurrency, Urgent: f.Urgent, Serial: f.Serial, MaxCrashes: f.MaxCrashes, Default: core.KindConfig{Lease: f.Lease},
	}); err != nil {
		return err
	}
	if err := f.readHandlers(handlers); err != nil {
		return err
	}
	return f.readTasks(tasks)
}

// checkLimits refuses bounds of what is stored that no store takes; zero is the default.
func (f *File) checkLimits(root place) error {
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
