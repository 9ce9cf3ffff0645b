package redisstore

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/script"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// The line of layout.lua that asks Redis for the time, and what takes its place in tests that hold it still.
const (
	realTime = "local now = redis.call('TIME')\nnow = now[1] * 1000 + math.floor(now[2] / 1000)\n"
	heldTime = "local now = tonumber(redis.call('GET', base .. 'time') or 1e12)\n"
)

// OpenAt is Open with a time that stands still until it is set, in every partition. With strict, each script begins
// with a #!lua line: on a cluster an undeclared slot is an error then.
func OpenAt(ctx context.Context, config Config, strict, still bool) (s *Store, set func(now time.Time) error, err error) {
	change := func(text string) string {
		if still {
			if !strings.Contains(text, realTime) {
				panic("layout.lua asks for the time in another way")
			}
			text = strings.Replace(text, realTime, heldTime, 1)
		}
		if strict {
			text = "#!lua flags=allow-oom\n" + text
		}
		return text
	}
	s, err = open(ctx, config, change)
	if err != nil || !still {
		return s, nil, err
	}
	if s.db.Cluster != nil {
		s.db.Cluster.Longest = time.Minute // a machine that is busy with other tests is not a node that has failed
	}
	s.swept = make([]atomic.Pointer[sweep], len(s.db.Parts))
	for i := range s.swept {
		s.swept[i].Store(&sweep{next: time.Now().Add(time.Hour)}) // sweeps are paced by the machine's clock
	}
	return s, func(now time.Time) error {
		pipe := s.db.Client.Pipeline()
		for _, p := range s.db.Parts {
			pipe.Set(ctx, p.Key("time"), now.UnixMilli(), 0)
		}
		_, err := pipe.Exec(ctx)
		return err
	}, nil
}

// Encode and Decode are the encoder of ids.
var (
	Encode = layout.Encode
	Decode = layout.Decode
)

// ScriptFile is a script as the Go side knows it.
type ScriptFile struct {
	Name string
	Keys []string
	Text string // as in its file, without the parts in front of it
	Sent string // as Redis gets it
	SHA  string
	// Replaces is set for submit's second form, which can replace tasks.
	Replaces bool
	Told     bool // it is told who calls, by one more argument than its header names
}

// ScriptFiles are all scripts.
func ScriptFiles() []ScriptFile {
	all := script.Load(nil)
	var out []ScriptFile
	all.Each(func(s *script.Script, name string, f script.Form) {
		out = append(out, ScriptFile{Name: name, Keys: s.Keys, Text: Part(name), Sent: s.Text(), SHA: s.SHA, Replaces: f == script.FormReplace, Told: s.Answers})
	})
	return out
}

// IndexOf is the index of some files.
func IndexOf(files map[string]Source) string {
	var b strings.Builder
	var all script.All
	all.Each(func(_ *script.Script, name string, f script.Form) {
		s := script.Hashed(files, name, f, func(text string) string { return text })
		answers := map[bool]string{false: "no", true: "yes"}[s.Answers]
		b.WriteString(strings.Join([]string{string(f) + name, s.SHA, strings.Join(s.Keys, ","), answers}, " ") + "\n")
	})
	return b.String()
}

// Index is the one that is packed.
func Index() string { return script.Index }

// Source is a file of scripts/ as it is packed.
type Source = script.Source

// Packed are all scripts and parts, by name.
func Packed() map[string]Source { return script.Sources() }

// Part is the file of a script, or of a part of scripts, with its comments.
func Part(name string) string {
	text, err := os.ReadFile("scripts/" + name + ".lua")
	if err != nil {
		panic(err)
	}
	return string(text)
}

// AddHook sees all commands of a store.
func (s *Store) AddHook(h redis.Hook) { s.db.Client.AddHook(h) }

// SubmitEach stores tasks as if each were a call of its own, that was joined with the others; it returns how each went.
func (s *Store) SubmitEach(ctx context.Context, tasks []store.Submission) ([]store.Submitted, []error, error) {
	outcomes := s.submitEach(ctx, tasks)
	placed, errs := make([]store.Submitted, len(tasks)), make([]error, len(tasks))
	for i, o := range outcomes {
		if o.err != nil {
			return nil, nil, o.err
		}
		placed[i], errs[i] = o.answer.Submitted, s.refusedTask(&tasks[i], &o.answer)
	}
	return placed, errs, nil
}

// Hear has a process believe that somebody listens.
func (s *Store) Hear() { s.db.Listened.Store(1) }

// Few is how many tasks of an agent are in the agenda; one, as with layout 1, or what layout 2 has.
func (s *Store) Few(n int) { s.few = n }

// Sweep makes the next claim sweep its partition.
func (s *Store) Sweep() {
	for i := range s.swept {
		s.swept[i].Store(nil)
	}
}

// Tags are the hash tags of n partitions.
func Tags(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = layout.Tag(i, n)
	}
	return out
}

// ClientRetries is how often the client repeats a command by itself.
func (s *Store) ClientRetries() int {
	c, ok := s.db.Client.(*redis.Client)
	if !ok {
		panic("not a client of one server")
	}
	return c.Options().MaxRetries
}

// Prefix begins the keys of a store.
func (s *Store) Prefix() string { return s.config.Prefix }

// RepartitionWith is Repartition with a hook that sees all of its commands, but for those of opening the store.
func RepartitionWith(ctx context.Context, config Config, r Repartitioning, hook redis.Hook) (Repartitioned, error) {
	config.moves = true
	s, err := Open(ctx, config)
	if err != nil {
		return Repartitioned{}, err
	}
	defer func() { _ = s.Close() }()
	s.db.Client.AddHook(hook)
	return s.repartition(ctx, r)
}

// KnownKey reports whether a repartition knows a key of a partition, by its name.
func KnownKey(name string) bool { return known(layout.Partition{}, name) == nil }

// SettleInFrontOf settles some runs as a turn does whose claims do not reach the server.
func (s *Store) SettleInFrontOf(ctx context.Context, runs []store.Settlement, requests []store.ClaimRequest) error {
	calls, _ := s.settleCalls(runs, requests)
	_, errs := s.db.RunAll(ctx, call.VerbTurn, calls)
	return errors.Join(errs...)
}
