package redisstore

// The conditions for a server before it is given tasks: its version, its eviction policy, the layout of the prefix.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// layoutVersion is the version of the layout that a new prefix gets, and oldestLayout that of the oldest one that this package
// reads and writes. The version grows when an older binary could not share a Redis with this one.
// Fields and keys that older binaries pass over do not count: they leave the version as it was.
const (
	layoutVersion = 2
	oldestLayout  = 1
)

// inAgenda is how many tasks an agent may have in the agenda since layout 2: with more it has queues, so that a flood of one
// agent keeps others waiting for so many tasks at most. Before it was one.
// guard: flood-on-redis
const inAgenda = 32

// preflight checks that the Redis can be relied on, and learns or sets the number of partitions.
func (s *Store) preflight(ctx context.Context) error {
	// PING comes first, as its error distinguishes an unreachable server from one that refuses.
	if err := s.db.Client.Do(ctx, "PING").Err(); err != nil {
		return s.reaching(err)
	}
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	// The layout before the probe: the scripts of this binary must not run
	// on a layout that they do not know.
	if err := s.checkLayout(ctx); err != nil {
		return err
	}
	return s.probe(ctx)
}

// checkServers looks at every server that has tasks, or may have once a master is lost.
func (s *Store) checkServers(ctx context.Context) error {
	if s.db.Cluster == nil {
		return s.checkServer(ctx, s.db.Client, s.name)
	}
	var mu sync.Mutex
	var errs []error
	// Also replicas: a failover makes one of them a master, with its own eviction policy.
	_ = s.db.Cluster.Client.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		err := s.checkServer(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		// Nil stops no other shard: all servers are checked, and all mistakes reported at once.
		return nil
	})
	return errors.Join(errs...)
}

// checkServer refuses a server that is too old or that may evict tasks, and warns of one that keeps nothing.
func (s *Store) checkServer(ctx context.Context, server redis.UniversalClient, name string) error {
	log := s.config.Logger
	if s.db.Cluster != nil {
		log = log.With(slog.String("node", name))
	}
	info, err := server.Do(ctx, "INFO").Text()
	switch {
	case err != nil && call.Passing(err): // a node of a cluster; the calls that need it report it
		log.WarnContext(ctx, "cannot check a Redis server: it does not answer", slog.Any("err", err))
		return nil
	case err != nil:
		// Managed Redis may refuse INFO. Everything that follows depends on
		// it, so nothing else can be checked.
		log.WarnContext(ctx, "cannot check the Redis server: INFO is not allowed", slog.Any("err", err))
		return nil
	}
	v := parseInfo(info)
	if s.db.Cluster == nil {
		// run_id changes at each start of a server. The mark of a probe names it, so
		// that a new server is probed again.
		s.server = v["run_id"]
	}
	major, minor := serverVersion(v["redis_version"])
	// 6.2 is the first with all commands of the scripts (ZMSCORE, for one).
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("Redis %s at %s is too old: duly needs 6.2 or later", v["redis_version"], name)
	}
	if v["cluster_enabled"] == "1" && s.db.Cluster == nil {
		return fmt.Errorf("cannot use Redis at %s: %s", name, nodeOfACluster)
	}
	// An empty policy means that the server does not report one:
	// nothing can be held against it.
	switch policy := v["maxmemory_policy"]; {
	case policy == "" || policy == "noeviction":
	case strings.HasPrefix(policy, "volatile-"): // of ours only finished records have a time to live
		log.WarnContext(ctx, "Redis may drop the records of finished tasks early", slog.String("maxmemory_policy", policy),
			slog.String("todo", noEviction))
	case s.config.AllowEviction:
		log.WarnContext(ctx, "Redis may evict tasks silently", slog.String("maxmemory_policy", policy))
	default:
		return fmt.Errorf("Redis at %s has maxmemory-policy %s, which drops tasks silently when memory is short: %s", name, policy, noEviction)
	}
	checkPersistence(ctx, log, server, v["aof_enabled"])
	return nil
}

// checkPersistence reports what a restart of a server loses, and no more than is known.
func checkPersistence(ctx context.Context, log *slog.Logger, server redis.UniversalClient, aof string) {
	// An append-only file survives a crash with at most the last seconds missing: nothing to report.
	if aof == "1" {
		return
	}
	asked := server.Do(ctx, "CONFIG", "GET", "save")
	save, err := layout.FieldsOf(asked), asked.Err()
	switch {
	// Managed services hide both settings; a warning that the operator cannot act on would
	// only train people to ignore warnings.
	case aof == "":
		log.InfoContext(ctx, "Redis does not report whether tasks survive a restart")
	case err != nil || len(save) == 0:
		log.InfoContext(ctx, "Redis has no append-only file and does not report whether it saves snapshots: a restart of Redis may lose tasks")
	case save["save"] == "":
		log.WarnContext(ctx, "Redis has no persistence: a restart of Redis loses all tasks")
	default:
		log.InfoContext(ctx, "Redis saves snapshots only: a crash of Redis loses what was written since the last one",
			slog.String("save", save["save"]), slog.String("todo", "set appendonly yes"))
	}
}

// noEviction is how the policy is set that keeps all tasks.
const noEviction = "set it to noeviction: CONFIG SET maxmemory-policy noeviction; on ElastiCache maxmemory-policy in a parameter group " +
	"of your own; on Memorystore gcloud redis instances update NAME --update-redis-config maxmemory-policy=noeviction"

// parseInfo reads INFO: a name and a value on each line, and headings, which have no colon.
func parseInfo(info string) map[string]string {
	v := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			v[name] = value
		}
	}
	return v
}

// serverVersion is 0.0 for a version that cannot be read, which counts as too old. Valkey reports the
// version of Redis that it is compatible with under the same name.
func serverVersion(s string) (major, minor int) {
	parts := strings.SplitN(s, ".", 3)
	if len(parts) < 2 {
		return 0, 0
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if errors.Join(err1, err2) != nil {
		return 0, 0
	}
	return major, minor
}

// Upgrade lets the prefix be written as this version lays tasks out, and returns the versions of the layout before and after.
// Nothing is moved: agents change over as they get tasks. Binaries that do not know the new layout refuse to open the prefix from
// then on. Those that run already do not notice, and could lose sight of tasks until an audit: stop them before. Other processes
// of this version use the new layout when they are started again.
func (s *Store) Upgrade(ctx context.Context) (from, to int, err error) {
	key := s.key.name()
	if from, err = s.db.Client.Do(ctx, "HGET", key, "version").Int(); err != nil {
		return 0, 0, call.Wrap("upgrade", err)
	}
	if err := s.db.Client.Do(ctx, "HSET", key, "version", layoutVersion).Err(); err != nil {
		return 0, 0, call.Wrap("upgrade", err)
	}
	s.few = inAgenda
	return from, layoutVersion, nil
}

// checkLayout stores the number of partitions under a new prefix, and refuses a prefix that has another number or a
// newer layout.
func (s *Store) checkLayout(ctx context.Context) error {
	key := s.key.name()
	want := s.config.Partitions
	if want == 0 {
		if want = 1; s.db.Cluster != nil { // one server handles no more with several: each batch becomes that many script calls
			want = DefaultPartitions
		}
	}
	stored, err := s.key.stored(ctx)
	// Only a new prefix is written to: one that exists can be opened while Redis has no memory left.
	if err == nil && (stored["version"] == "" || stored["partitions"] == "") {
		if err = s.key.create(ctx, want, layoutVersion); err == nil {
			stored, err = s.key.stored(ctx)
		}
	}
	if err != nil {
		if remedy(err, s.secure) != "" {
			return s.reaching(err)
		}
		return err
	}
	if state, moves, err := movingOf(stored); moves {
		return s.duringAMove(key, state, err)
	}
	return s.useLayout(ctx, key, stored)
}

// useLayout is checkLayout for a layout that is stored under a prefix.
func (s *Store) useLayout(ctx context.Context, key string, stored map[string]string) error {
	found, err := strconv.Atoi(stored["version"])
	if err != nil || found < oldestLayout || found > layoutVersion {
		return fmt.Errorf("the prefix %q has layout version %q, but this binary reads versions %d to %d: use a binary of that version, or another prefix",
			s.config.Prefix, stored["version"], oldestLayout, layoutVersion)
		// Never guess here: a wrong number of partitions would look for agents in the wrong places.
	}
	s.layout = found
	if s.few = 1; found > 1 {
		s.few = inAgenda
	} else {
		s.config.Logger.WarnContext(ctx, "the tasks of this prefix are laid out as an earlier version of duly does it, which costs Redis more",
			slog.String("prefix", s.config.Prefix), slog.String("todo", "run duly upgrade once every process is of this version"))
	}
	n, err := strconv.Atoi(stored["partitions"])
	if err != nil || n < 1 || n > maxPartitions || n&(n-1) != 0 {
		return fmt.Errorf("the key %q is damaged: its partitions are %q", key, stored["partitions"])
	}
	if s.config.Partitions != 0 && s.config.Partitions != n {
		return fmt.Errorf("the prefix %q was created with %d partitions, not %d: leave Partitions unset, or use another prefix",
			s.config.Prefix, n, s.config.Partitions)
	}
	s.db.Parts = layout.PartitionsOf(s.config.Prefix, n)
	return nil
}
