package redisstore

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha1" //nolint:gosec // EVALSHA names scripts by SHA-1; nothing is secured by it
	_ "embed"     // of the scripts
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// packed are the files of scripts/, as JSON of text by name, compressed: `make scripts` writes it, and a test tells when that
// was forgotten.
//
//go:embed scripts.json.gz
var packed []byte

var sources = sync.OnceValue(func() map[string]string {
	var texts map[string]string
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err == nil {
		err = json.NewDecoder(r).Decode(&texts)
	}
	if err != nil {
		panic("redisstore: scripts.json.gz is damaged: " + err.Error())
	}
	return texts
})

// The files that are put in front of scripts. The first is in front of every one.
const (
	partLayout   = "layout"
	partLook     = "look"
	partHolds    = "holds"
	partAsked    = "asked"
	partFinished = "finished"
	partKnown    = "known"
)

// script is one file of scripts/: its text, and the keys that it is given, as its header names them.
type script struct {
	name string
	keys []string
	text string
	sha  string
}

// The scripts, one for each verb; replace is submit with what it takes to replace tasks.
type scripts struct {
	submit, replace, touch, claim, next, settle, extend, replay, order, hold, read, list, agents, pauses, kinds, audit, sweep, presence script
}

// load reads the scripts; change, if not nil, is applied to each text, which tests use to hold time still.
func load(change func(text string) string) scripts {
	get := func(name string, parts []string, keys ...string) script {
		var b strings.Builder
		for _, part := range append([]string{partLayout}, parts...) {
			b.WriteString(source(part) + "\n")
		}
		b.WriteString(source(name))
		text := b.String()
		if change != nil {
			text = change(text)
		}
		sum := sha1.Sum([]byte(text)) //nolint:gosec // see the import
		return script{name: name, keys: keys, text: text, sha: hex.EncodeToString(sum[:])}
	}
	var (
		none    []string
		look    = []string{partLook}
		held    = []string{partLook, partHolds}
		asked   = []string{partLook, partHolds, partAsked}
		settles = []string{partLook, partFinished}
		known   = []string{partKnown}
		knows   = []string{partLook, partHolds, partKnown}
		all     = []string{partLook, partHolds, partFinished, partKnown}
	)
	return scripts{
		submit:   get("submit", known, "agenda", "agents", "tasks", "finished"),
		replace:  get("submit", all, "agenda", "agents", "tasks", "finished"),
		touch:    get("touch", knows, "agenda", "agents", "tasks", "pulse"),
		claim:    get("claim", asked, "agenda", "agents", "tasks", "state", "claims", "leases", "parked"),
		next:     get("next", asked, "agenda", "leases", "parked"),
		settle:   get("settle", settles, "agenda", "agents", "tasks", "state", "claims", "leases", "finished"),
		extend:   get("extend", none, "agenda", "state", "claims", "leases"),
		replay:   get("replay", known, "agenda", "agents", "finished"),
		order:    get("order", all, "agenda", "agents", "claims", "leases", "finished"),
		hold:     get("hold", held, "agenda", "agents", "leases", "holds"),
		read:     get("read", knows, "agenda", "agents", "state", "claims", "leases", "finished"),
		list:     get("list", held, "agenda", "agents", "claims", "leases", "finished", "parked"),
		agents:   get("agents", look, "agenda", "agents"),
		pauses:   get("pauses", look, "agenda", "holds"),
		kinds:    get("kinds", none, "agenda", "kinds"),
		audit:    get("audit", held, "agenda", "agents", "tasks", "claims", "leases", "parked"),
		presence: get("presence", none, "agenda", "processes"),
		sweep:    get("sweep", []string{partFinished}, "agenda", "finished", "stale"),
	}
}

func source(name string) string {
	text, ok := sources()[name]
	if !ok {
		panic("redisstore: " + name + ".lua is not packed: run make scripts")
	}
	return text
}

// call is one run of a script in a partition.
type call struct {
	script    *script
	partition int
	args      []any
}

// Attempts at a call whose answer did not arrive, and the first pause between them. Every script can be repeated
// safely: by task id, nonce or fence.
const (
	attempts = 4
	pause    = 20 * time.Millisecond
)

// eval runs calls in one round trip to each node and returns their replies in order. It repeats those that failed in a way
// that may pass, and returns the first error that is left as a *core.StoreError, together with the replies of the calls that
// did not fail; those that did have none.
func (s *Store) eval(ctx context.Context, verb string, calls []call) ([][]any, error) {
	replies := make([][]any, len(calls))
	groups := s.byNode(ctx, len(calls), func(i int) int { return calls[i].partition })
	errs := make([]error, len(groups))
	atOnce(len(groups), func(g int) {
		ctx, cancel := s.patience(ctx, verb)
		defer cancel()
		errs[g] = s.evalEach(ctx, verb, calls, groups[g].members, replies)
	})
	return replies, cmp.Or(errs...)
}

// evalEach runs the calls in todo, and puts their replies at their places.
func (s *Store) evalEach(ctx context.Context, verb string, calls []call, todo []int, replies [][]any) error {
	whole := false
	for attempt := 1; ; attempt++ {
		failed, unknown, err := s.attempt(ctx, calls, todo, replies, whole)
		if err == nil {
			return nil
		}
		s.cluster.learn(ctx, err)
		if unknown && !whole { // a script the server does not have: at once again, with its text
			whole, todo = true, failed
			attempt--
			continue
		}
		if attempt == attempts || !passing(err) || !wait(ctx, attempt) {
			return wrap(verb, err)
		}
		todo = failed
	}
}

// attempt sends the calls in todo, whole or by their hash. It returns those that failed, whether one did because the
// server does not know its script, and the first error.
func (s *Store) attempt(ctx context.Context, calls []call, todo []int, replies [][]any, whole bool) ([]int, bool, error) {
	cmds := make([]*redis.Cmd, len(todo))
	send := func(c redis.Cmdable) {
		for k, i := range todo {
			keys := s.parts[calls[i].partition].keys(calls[i].script.keys)
			if whole {
				cmds[k] = c.Eval(ctx, calls[i].script.text, keys, calls[i].args...)
			} else {
				cmds[k] = c.EvalSha(ctx, calls[i].script.sha, keys, calls[i].args...)
			}
		}
	}
	if len(todo) == 1 {
		send(s.client)
	} else {
		pipe := s.client.Pipeline()
		send(pipe)
		_, _ = pipe.Exec(ctx) // each command holds its own error
	}
	var failed []int
	var unknown bool
	var first error
	for k, i := range todo {
		reply, err := cmds[k].Slice()
		if err != nil {
			failed = append(failed, i)
			unknown = unknown || redis.HasErrorPrefix(err, "NOSCRIPT")
			if first == nil {
				first = err
			}
			continue
		}
		replies[i] = reply
	}
	return failed, unknown, first
}

// wait pauses before another attempt, longer each time and never in step with others; false if ctx ends first.
func wait(ctx context.Context, attempt int) bool {
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

// passing reports whether an error may be gone a moment later.
func passing(err error) bool {
	var network net.Error
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, redis.ErrClosed) {
		return false
	}
	if errors.Is(err, io.EOF) || errors.As(err, &network) || errors.Is(err, net.ErrClosed) {
		return true
	}
	for _, prefix := range []string{"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "BUSY", "NOREPLICAS", "UNKILLABLE"} {
		if redis.HasErrorPrefix(err, prefix) {
			return true
		}
	}
	return false
}

func wrap(verb string, err error) error {
	if redis.HasErrorPrefix(err, "OOM") || strings.Contains(err.Error(), "OOM command not allowed") {
		err = core.ErrStoreFull
	}
	return &core.StoreError{Verb: verb, Err: err}
}
