package redisstore

// The store: its configuration, how it is opened and closed.

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/beside"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/script"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/view"
	"github.com/seed-6f6f2c11/duly/core/redisstore/output"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/core/store/window"
)

// DefaultPrefix begins every key unless Config.Prefix says otherwise.
const DefaultPrefix = "duly:"

// Defaults of Config.
// The limits of tasks, records and bytes keep one agent from filling a Redis, by accident or on
// purpose; an operator who needs more sets them.
const (
	DefaultPartitions = 8 // in a cluster; a single server has one
	DefaultRetention  = 7 * 24 * time.Hour
	DefaultKept       = 10_000
	DefaultKeptBytes  = 64 << 20
	DefaultMaxTasks   = 10_000
	DefaultMaxBytes   = 64 << 20
	// Each look reads a key of every partition, so their number is bounded.
	maxPartitions      = 1024
	defaultDialTimeout = 5 * time.Second
)

// ShortestRetention is the least that Config.Retention may be, and LeastBytes the least that KeptBytes and MaxBytes may be.
const (
	ShortestRetention = time.Minute
	LeastBytes        = 1 << 10
)

// Config says which Redis a store uses and how. The zero value of each field but URL and Options is a good default.
type Config struct {
	// URL of the Redis. It may hold a user and a password, in each of these forms; with rediss in place of redis it is TLS:
	//
	//	redis://user:password@host:6379/0
	//	redis+cluster://user:password@host1:6379,host2:6379
	//	redis+sentinel://user:password@host1:26379,host2:26379/mymaster/0?sentinel_password=...
	//	unix:///path/of/redis.sock
	//
	// One node of a cluster is enough, as it knows the others; several are for when it is away.
	URL string
	// CAFile, CertFile and KeyFile are files in PEM for a URL with TLS: who signs the server's certificate, if the machine
	// does not trust them already, and the client's own certificate and key, if the server asks for one.
	CAFile, CertFile, KeyFile string
	// Options are used instead of URL when set, for settings that a URL cannot express. The fields that the store depends on are
	// overwritten: MaxRetries and ContextTimeoutEnabled.
	Options *redis.UniversalOptions
	// Credentials, if it is set, has the user and the password of each new connection, in place of those of URL and Options.
	// With it a password that is rotated, or a token that expires, is renewed while the store is open: a call that the server
	// refuses with WRONGPASS or NOAUTH asks for renewed ones, and is repeated once. Sentinels keep those of URL.
	Credentials Credentials
	// Prefix of every key, DefaultPrefix if empty. Stores with different prefixes do not see each other.
	Prefix string
	// Partitions, a power of two. When the prefix is new zero means one on a single server, which several only make slower,
	// and DefaultPartitions in a cluster, which they spread over its nodes. Otherwise it means what the prefix was created
	// with, and Open refuses another number.
	Partitions int
	// Retention is how long finished tasks are remembered, at least a minute: DefaultRetention if zero.
	Retention time.Duration
	// Kept is the most finished tasks of an agent that are remembered, those that failed counted apart from the others:
	// DefaultKept if zero. The oldest go first. A history may be longer by a hundredth, and by 64 at most. How a task has
	// ended that went before its time stays known for [store.KnownFor].
	Kept int
	// KeptBytes bounds the records of finished tasks of an agent, which have the payloads of those that failed and the results
	// of those that completed, both counted apart as with Kept: DefaultKeptBytes if zero. Only records of
	// 4 KiB and more count. The oldest go first; the newest stays however large it is.
	KeptBytes int
	// MaxTasks is the most live tasks of one agent: DefaultMaxTasks if zero.
	MaxTasks int
	// MaxBytes is the most bytes of the live tasks of one agent, as they are stored: DefaultMaxBytes if zero. Only tasks of 4 KiB
	// and more count, as MaxTasks bounds those that are smaller.
	MaxBytes int
	// AllowEviction lets the store use a Redis that may evict any key to make room. Tasks can then vanish silently.
	AllowEviction bool
	// Remember lets Open do without a test run of the scripts, which sends some thirty calls, if one has passed within a day: of
	// the same scripts, under the same user, on the same run of the server. Meant for programs that end soon, such as commands
	// and functions; what the user was denied meanwhile fails when it is needed.
	Remember bool
	// Logger gets warnings about the Redis. Nothing is logged if nil.
	Logger *slog.Logger

	// hook sees the client's commands; nil but in a measurement.
	hook redis.Hook
	// moves lets Repartition open a prefix that is being moved.
	moves bool
}

// withDefaults comes before validate, so that zero means "not set" for each field.
func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Retention == 0 {
		c.Retention = DefaultRetention
	}
	if c.Kept == 0 {
		c.Kept = DefaultKept
	}
	if c.KeptBytes == 0 {
		c.KeptBytes = DefaultKeptBytes
	}
	if c.MaxTasks == 0 {
		c.MaxTasks = DefaultMaxTasks
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = DefaultMaxBytes
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// validate refuses settings that make no sense, with a *[store.ConfigError].
// A Config is checked before anything is connected.
func (c Config) validate() error {
	switch {
	// A brace in a prefix would end up as a hash tag of its own: all partitions in one
	// slot, or a script's keys in several.
	case strings.ContainsAny(c.Prefix, "{} \t\r\n"):
		return misconfigured("Prefix", c.Prefix, "must not contain braces or white space, as %q does", c.Prefix)
	case c.Partitions < 0 || c.Partitions > maxPartitions || c.Partitions&(c.Partitions-1) != 0:
		return misconfigured("Partitions", c.Partitions, "must be a power of two up to %d, not %d", maxPartitions, c.Partitions)
	case c.Retention < ShortestRetention:
		return misconfigured("Retention", c.Retention, "must be at least %s, not %s", ShortestRetention, c.Retention)
	case c.Kept < 1:
		return misconfigured("Kept", c.Kept, "must be at least 1, not %d", c.Kept)
	case c.KeptBytes < LeastBytes:
		return misconfigured("KeptBytes", c.KeptBytes, "must be at least %d, not %d", LeastBytes, c.KeptBytes)
	case c.MaxTasks < 1:
		return misconfigured("MaxTasks", c.MaxTasks, "must be at least 1, not %d", c.MaxTasks)
	case c.MaxBytes < LeastBytes:
		return misconfigured("MaxBytes", c.MaxBytes, "must be at least %d, not %d", LeastBytes, c.MaxBytes)
	}
	return nil
}

// kept is how much is kept of an agent, as the scripts read it: records, and KiB of large ones.
// The limit of bytes is one of KiB for the scripts, as weight counts them.
func (c Config) kept() string { return fmt.Sprintf("%d|%d", c.Kept, c.KeptBytes>>10) }

// live is how much an agent may have that is live, as the scripts read it: tasks, KiB of large ones, and tasks in the agenda.
func (s *Store) live() string {
	return fmt.Sprintf("%d|%d|%d", s.config.MaxTasks, s.config.MaxBytes>>10, s.few)
}

// target is the Redis that is configured.
func (c Config) target() (target, error) {
	var t target
	// Options win over URL, also over one from the environment.
	if c.Options != nil {
		t = target{options: *c.Options, name: strings.Join(c.Options.Addrs, ","), tls: c.Options.TLSConfig != nil}
	} else {
		var err error
		if t, err = parseURL(c.URL); err != nil {
			return t, err
		}
		if err := c.secure(&t); err != nil {
			return t, err
		}
	}
	o := &t.options
	if o.DialTimeout == 0 {
		o.DialTimeout = defaultDialTimeout
	}
	// Two addresses without a master's name are a cluster for go-redis too.
	if o.IsClusterMode || len(o.Addrs) > 1 && o.MasterName == "" {
		// Calls that one node does not answer are repeated by go-redis, then by us, while the answers of the others wait.
		o.DialerRetries = cmp.Or(o.DialerRetries, 1)
		o.MinRetryBackoff = cmp.Or(o.MinRetryBackoff, time.Millisecond)
		o.ReadTimeout = cmp.Or(o.ReadTimeout, 3*time.Second) // bounds asking a node that hangs who has which slots
	}
	// A script that ran and whose answer was lost must be repeated by the store, with its nonce:
	// repeated by go-redis, "claim 5" left the client holding five tasks while Redis had leased ten.
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true // a call ends when its context does
	// CLIENT SETINFO, which go-redis would send to introduce itself, does not exist before 7.2, and
	// users with few permissions are denied it.
	o.DisableIdentity = true
	return t, nil
}

// submitLanes is how many joined submits are under way at once to one server. While Redis works on one the other is being made;
// more than two only make smaller batches.
const submitLanes = 2

// lanes join the submits of single tasks, or single touches.
type lanes[Q any] []*coalescer[*Q, submitted]

// of is the lane of an agent, always the same one: in a cluster its partition's.
func (l lanes[Q]) of(agent string) *coalescer[*Q, submitted] {
	return l[store.PartitionOf(agent, len(l))]
}

// lanesOf makes them. In a cluster each partition has its own, as one whose node is away must not hold up the others.
func lanesOf[Q any](s *Store, run func(context.Context, []Q) []outcome[submitted]) lanes[Q] {
	n := submitLanes
	if s.db.Cluster != nil {
		n = len(s.db.Parts)
	}
	all := make(lanes[Q], n)
	for i := range all {
		all[i] = newCoalescer(func(ctx context.Context, batch []*Q) []outcome[submitted] {
			questions := make([]Q, len(batch))
			// The questions are copied: their callers may be gone before the script is sent.
			for k, q := range batch {
				questions[k] = *q
			}
			return run(ctx, questions)
		})
	}
	return all
}

// Store is a [store.Store] on Redis. It is safe for concurrent use: after Open its fields do not
// change, except those that are atomic or behind a lock. It has no goroutine of its own except for
// those of Wakeups, which end with their context.
type Store struct {
	config Config
	db     call.DB
	owned  bool // the client is the store's, which Open has made
	few    int  // tasks of an agent in the agenda: see inAgenda
	layout int  // version of the layout of the prefix
	key    layoutKey
	// name is shown to people, and secure reports whether the connection is encrypted.
	name   string
	secure bool
	user   string // of the ACL; empty for the default one
	server string // which run of a server it is; empty for a cluster, and if it does not report it

	// submits and touches join the calls of single tasks.
	submits lanes[store.Submission]
	touches lanes[store.Touch]
	// swept has, for each partition, how far this process has swept it; nil until the first time.
	swept []atomic.Pointer[sweep]
	// plain has, for each partition, how its plain scripts have answered.
	plain []call.Plain
	// permits has the reports of partitions and homes on limits and budgets that span partitions.
	permits *permits
	*output.Outputs
	bounded
	keeper
	reader
}

// bounded are the limits and budgets of a store.
type bounded = bounds.Bounds

// reader reads what a store has.
type reader = view.View

// keeper has what a store keeps beside tasks.
type keeper = beside.Store

// What is optional for a store, this one has: callers ask whether it is there.
var (
	_ store.Store    = (*Store)(nil)
	_ store.Waker    = (*Store)(nil)
	_ feed.Feed      = (*Store)(nil)
	_ window.Recent  = (*Store)(nil)
	_ store.Presence = (*Store)(nil)
)

// Open connects to Redis and checks that it can be relied on: that it is new enough, runs the scripts under the given
// user, evicts nothing, and has the partitions that the prefix was created with. The context bounds the checks only.
func Open(ctx context.Context, config Config) (*Store, error) {
	return open(ctx, config, nil)
}

// change is nil but in tests, which put a clock of their own into the scripts.
func open(ctx context.Context, config Config, change func(string) string) (*Store, error) {
	config = config.withDefaults()
	err := config.validate()
	if err == nil && config.URL == "" && config.Options == nil {
		err = wrongURL("is required: for instance redis://127.0.0.1:6379/0")
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	to, err := config.target()
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	var renews *renewal
	if config.Credentials != nil {
		renews = &renewal{ask: config.Credentials}
		renews.use(&to.options)
	}
	client := redis.NewUniversalClient(&to.options)
	hooked(client, call.Impatience{})
	if renews != nil {
		hooked(client, renews)
	}
	if config.hook != nil {
		hooked(client, config.hook)
	}
	s, err := on(ctx, client, &to, config, change)
	if err != nil {
		// The store owns the client from here on, also when it cannot be used.
		_ = s.db.Client.Close() // the first error is the one to report
		return nil, err
	}
	s.owned = true
	return s, nil
}

// on makes a store on a client, and checks that it can be relied on. The store has its client also with an error.
func on(ctx context.Context, client redis.UniversalClient, to *target, config Config, change func(string) string) (*Store, error) {
	s := &Store{
		config: config, db: call.New(client, script.Load(change)), key: layoutKey{client: client, prefix: config.Prefix}, permits: new(permits),
		name: to.name, secure: to.tls, user: to.options.Username,
	}
	if err := s.preflight(ctx); err != nil {
		return s, err
	}
	// After preflight, which learns how many partitions the prefix has.
	s.swept = make([]atomic.Pointer[sweep], len(s.db.Parts))
	s.plain = make([]call.Plain, len(s.db.Parts))
	s.partitioned()
	s.submits, s.touches = lanesOf(s, s.submitEach), lanesOf(s, s.touch)
	s.Outputs = &output.Outputs{
		Client: client, Key: func(agent, name string) string { return s.db.Parts[s.db.PartitionOf(agent)].Key(name) }, Member: layout.Encode, Keep: config.Retention, Failed: call.Wrap,
	}
	return s, nil
}

// partitioned gives the parts of the store the partitions, which are known or have changed.
func (s *Store) partitioned() {
	s.reader = view.New(&s.db, s.config.Retention)
	s.bounded, s.keeper = bounds.New(&s.db), beside.New(&s.db, s.config.Prefix)
}

// over is the same store with other partitions.
func (s *Store) over(parts []layout.Partition) *Store {
	v := *s
	v.db.Parts = parts
	v.partitioned()
	return &v
}

// Close closes the connections, unless they are of the client that [New] was given. Calls under way fail.
// It does not wait for calls under way. Callers stop their pulls first.
func (s *Store) Close() error {
	if !s.owned {
		return nil
	}
	return s.db.Client.Close()
}

// Name is the URL of the Redis without users, passwords and parameters, for people.
func (s *Store) Name() string { return s.name }

// Partitions is the number of partitions under the prefix.
func (s *Store) Partitions() int { return len(s.db.Parts) }

// Masters is how many masters of a cluster share the slots; zero on a single server.
func (s *Store) Masters(ctx context.Context) (int, error) { return s.db.Masters(ctx) }

// WithPatience is a context whose calls of a store fail when Redis has not answered one of them for that long, all its attempts together. A caller who waits for
// an answer hears so early that Redis is away, however many calls what it asks for takes; pulls and settlements wait for longer, as nothing is gained by giving up.
func WithPatience(ctx context.Context, d time.Duration) context.Context {
	return call.WithPatience(ctx, d)
}
