package redisstore

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
)

// layoutVersion is the version of the layout that this package reads and writes. It grows when an older binary could
// not share a Redis with this one.
const layoutVersion = 1

// preflight checks that the Redis can be relied on, and learns or sets the number of partitions.
func (s *Store) preflight(ctx context.Context) error {
	if err := s.client.Ping(ctx).Err(); err != nil {
		return s.reaching(err)
	}
	if err := s.checkServers(ctx); err != nil {
		return err
	}
	if err := s.checkLayout(ctx); err != nil {
		return err
	}
	return s.probe(ctx)
}

// checkServers looks at every server that has tasks, or may have once a master is lost.
func (s *Store) checkServers(ctx context.Context) error {
	if s.cluster == nil {
		return s.checkServer(ctx, s.client, s.name)
	}
	var mu sync.Mutex
	var errs []error
	_ = s.cluster.client.ForEachShard(ctx, func(ctx context.Context, node *redis.Client) error {
		err := s.checkServer(ctx, node, node.Options().Addr)
		mu.Lock()
		defer mu.Unlock()
		errs = append(errs, err)
		return nil
	})
	return errors.Join(errs...)
}

// checkServer refuses a server that is too old or that may evict tasks, and warns of one that keeps nothing.
func (s *Store) checkServer(ctx context.Context, server redis.UniversalClient, name string) error {
	log := s.config.Logger
	if s.cluster != nil {
		log = log.With(slog.String("node", name))
	}
	info, err := server.Info(ctx).Result()
	switch {
	case err != nil && passing(err): // a node of a cluster; the calls that need it say so
		log.WarnContext(ctx, "cannot check a Redis server: it does not answer", slog.Any("err", err))
		return nil
	case err != nil:
		log.WarnContext(ctx, "cannot check the Redis server: INFO is not allowed", slog.Any("err", err))
		return nil
	}
	v := parseInfo(info)
	major, minor := serverVersion(v["redis_version"])
	if major < 6 || major == 6 && minor < 2 {
		return fmt.Errorf("Redis %s at %s is too old: duly needs 6.2 or later", v["redis_version"], name)
	}
	if v["cluster_enabled"] == "1" && s.cluster == nil {
		return fmt.Errorf("cannot use Redis at %s: %s", name, nodeOfACluster)
	}
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

// checkPersistence tells what a restart of a server loses, and no more than is known.
func checkPersistence(ctx context.Context, log *slog.Logger, server redis.UniversalClient, aof string) {
	if aof == "1" {
		return
	}
	save, err := server.ConfigGet(ctx, "save").Result()
	switch {
	case aof == "":
		log.InfoContext(ctx, "Redis does not say whether it keeps tasks across a restart")
	case err != nil || len(save) == 0:
		log.InfoContext(ctx, "Redis has no append-only file, and does not say whether it saves snapshots: a restart of Redis may lose tasks")
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

func parseInfo(info string) map[string]string {
	v := map[string]string{}
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			v[name] = value
		}
	}
	return v
}

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

// checkLayout stores the number of partitions under a new prefix, and refuses a prefix that has another number or a
// newer layout.
func (s *Store) checkLayout(ctx context.Context) error {
	key := s.config.Prefix + "layout"
	want := s.config.Partitions
	if want == 0 {
		want = DefaultPartitions
	}
	pipe := s.client.Pipeline()
	pipe.HSetNX(ctx, key, "version", layoutVersion)
	pipe.HSetNX(ctx, key, "partitions", want)
	stored := pipe.HGetAll(ctx, key)
	if _, err := pipe.Exec(ctx); err != nil {
		if remedy(err, s.secure) != "" {
			return s.reaching(err)
		}
		return wrap("open", err)
	}
	found, err := strconv.Atoi(stored.Val()["version"])
	if err != nil || found != layoutVersion {
		return fmt.Errorf("the prefix %q has layout version %q, this binary knows %d: use a binary of that version, or another prefix",
			s.config.Prefix, stored.Val()["version"], layoutVersion)
	}
	n, err := strconv.Atoi(stored.Val()["partitions"])
	if err != nil || n < 1 || n > maxPartitions || n&(n-1) != 0 {
		return fmt.Errorf("the key %q is damaged: its partitions are %q", key, stored.Val()["partitions"])
	}
	if s.config.Partitions != 0 && s.config.Partitions != n {
		return fmt.Errorf("the prefix %q was created with %d partitions, not %d: leave Partitions unset, or use another prefix",
			s.config.Prefix, n, s.config.Partitions)
	}
	s.parts = partitionsOf(s.config.Prefix, n)
	return nil
}

// probe runs the whole life of two tasks in a partition that nothing else uses, so that a user who lacks a command is
// refused here and not halfway through a script.
func (s *Store) probe(ctx context.Context) error {
	if err := s.life(ctx); err != nil {
		if s := err.Error(); strings.Contains(s, "NOPERM") || strings.Contains(s, "can't run this command") {
			return fmt.Errorf("the Redis user may not do what duly needs: %w; see docs/guarantees.md for the ACL", err)
		}
		return fmt.Errorf("a test run of the scripts failed: %w", err)
	}
	return nil
}

// life is submit, claim, extend, settle, read, list, replay and sweep, then touch, hold and orders. It runs on a store of
// one partition of its own, whose keys it removes.
func (s *Store) life(ctx context.Context) error {
	p := *s
	p.config.MaxTasks = DefaultMaxTasks // it makes more tasks than a user may allow an agent
	nonce := newNonce()
	p.parts = []partition{{base: s.config.Prefix + "{probe." + nonce + "}:"}}
	defer func() {
		names := []string{
			"agenda", "agents", "tasks", "state", "claims", "leases", "ended", "finished", "counters", "due",
			"queue:3:a", "history:a", "parked", "parked:probe", "group:a:g", "pulse", "orders", "holds", "open", "kinds", "serial", "processes",
			"failures:probe", "ends:a", "dead:a", "stale", "gone", "groups", "answers",
		}
		_ = s.client.Unlink(context.WithoutCancel(ctx), p.parts[0].keys(names)...).Err() // a few idle keys
	}()
	task := func(id string) core.Submission {
		return core.Submission{Agent: "a", ID: id, Kind: "probe", Group: "g", Level: core.LevelLow}
	}
	alone := task("3") // the group ends with the other two
	alone.Group = ""
	if _, err := p.submitAll(ctx, []core.Submission{task("1"), task("2"), alone}, modeAll); err != nil {
		return err
	}
	if _, _, err := p.take(ctx, nil); err != nil { // parks
		return err
	}
	fence, tasks, err := p.take(ctx, []string{"probe"})
	if err != nil || len(tasks) == 0 {
		return errors.Join(err, errors.New("nothing was claimed"))
	}
	progress := []core.Progress{{Index: 0, Agent: "a", ID: tasks[0].ID, State: []byte("s")}}
	if _, err := p.Extend(ctx, []core.Extension{{Fence: fence, Lease: sweepEvery, Progress: progress}}); err != nil {
		return err
	}
	verbs := []core.Verb{core.VerbFail, core.VerbComplete, core.VerbAgain}
	var runs []core.Settlement
	for i, t := range tasks {
		runs = append(runs, core.Settlement{
			Run: t.Run, Verb: verbs[i%len(verbs)], Group: "g", State: []byte("s"), Kind: "probe",
			Tally: &core.RunStat{Kind: "probe", Failed: true},
		})
	}
	runs[len(runs)-1].Group = ""
	if _, err := p.Settle(ctx, runs); err != nil {
		return err
	}
	if _, err := p.Read(ctx, core.Query{Agent: "a", Group: "g", Limit: 1}); err != nil {
		return err
	}
	if _, err := p.Control(ctx, []core.Command{{Op: core.OpReplay, Submission: task(tasks[0].ID)}}); err != nil {
		return err
	}
	if err := p.operate(ctx); err != nil {
		return err
	}
	_, err = p.eval(ctx, "sweep", []call{{script: &p.scripts.sweep, args: []any{"0", 1, "1|1"}}})
	return err
}

// operate goes through what an operator can do, looks, and says what a process runs, on a store that life made.
func (s *Store) operate(ctx context.Context) error {
	touched := core.Submission{Agent: "a", ID: "4", Kind: "probe", Level: core.LevelLow, Pulse: &core.Pulse{}}
	if o := s.touch(ctx, []core.Submission{touched}); o[0].err != nil {
		return o[0].err
	}
	if _, err := s.Claim(ctx, []core.ClaimRequest{{Agents: []string{"a"}}}); err != nil { // looks
		return err
	}
	if err := s.Announce(ctx, "probe", nil, sweepEvery); err != nil {
		return err
	}
	one := core.Scoped{Agent: "a", ID: "4"}
	if _, err := s.Control(ctx, []core.Command{
		{Op: core.OpHold, Scope: one, Until: core.When{After: sweepEvery}},
		{Op: core.OpRun, Submission: touched},
		{Op: core.OpUnhold, Scope: one},
		{Op: core.OpAudit, Audit: core.Audit{Cursor: "t00", Repair: true}}, // not t0, which begins a round that counts
		{Op: core.OpAudit, Audit: core.Audit{Cursor: "a0", Repair: true}},
		{Op: core.OpAudit, Audit: core.Audit{Cursor: "g0", Repair: true}},
		{Op: core.OpDelete, Submission: touched},
	}); err != nil {
		return err
	}
	if _, err := s.Read(ctx, core.Query{Agent: "a", IDs: []string{"1", "2", "3"}, Explain: true}); err != nil {
		return err
	}
	if _, err := s.Read(ctx, core.Query{Limit: 1}); err != nil {
		return err
	}
	_, err := s.Stats(ctx)
	return err
}

func (s *Store) take(ctx context.Context, kinds []string) (core.Fence, []core.Claimed, error) {
	r := core.ClaimRequest{Nonce: newNonce(), Agents: []string{"a"}, Kinds: kinds, Limit: core.MaxClaim, Lease: sweepEvery}
	replies, err := s.eval(ctx, "claim", []call{{script: &s.scripts.claim, args: claimArgs(&r)}})
	if err != nil {
		return 0, nil, err
	}
	c, err := parseClaim(0, replies[0])
	return c.Fence, c.Tasks, err
}

// newNonce is a nonce for a claim of the store's own.
func newNonce() string { return rand.Text()[:16] }
