package doctor

// The checks of doctor --host: what a provider's Redis is set to, how to set it there, and what it costs.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store/server"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// host is a place where duly runs, or where its Redis does: what to do there about each finding.
type host struct {
	name string

	eviction, persistence, cluster, tls, acl string
	// durable says that the provider persists writes, even if the server's own persistence settings say otherwise.
	durable bool
	// price is what a month costs.
	price func(u *load) []item
}

// load is what a price depends on.
type load struct {
	perSecond float64 // commands that Redis executes, on average since it was started
	gb        float64 // in use
	ticks     float64 // a month
	tick      redisstore.Tick
}

// item is a part of a price.
type item struct {
	Name    string  `json:"name"`
	Dollars float64 `json:"dollars"`
}

// hosts are those that doctor knows.
var hosts = map[string]host{
	"lambda": amazon(onLambda), "elasticache": amazon(nil),
	"gcf": google(onFunction), "cloudrun": google(onFunction),
	"upstash": {
		eviction:    "switch Eviction off in the console of the database (Details, Configuration)",
		persistence: "nothing: Upstash stores each write on disk",
		cluster:     "use the rediss:// URL of the console: a database of Upstash is no cluster to its clients",
		tls:         "use the rediss:// URL of the console",
		acl:         "in the console's CLI: ACL SETUSER duly with the line of docs/guarantees.md",
		durable:     true, price: onUpstash,
	},
}

// hostNames are the names of the hosts, for people.
func hostNames() string {
	var names []string
	for name := range hosts {
		names = append(names, name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// amazon is ElastiCache, and what calls it.
func amazon(around func(u *load) []item) host {
	return host{
		eviction: "CONFIG SET is forbidden on ElastiCache: aws elasticache modify-cache-parameter-group --cache-parameter-group-name GROUP " +
			"--parameter-name-values ParameterName=maxmemory-policy,ParameterValue=noeviction, on a parameter group of your own that the replication group uses",
		persistence: "ElastiCache has no append-only file: use Multi-AZ with a replica, and daily snapshots; MemoryDB if no write may be lost",
		cluster:     "use the configuration endpoint with rediss+cluster:// (ElastiCache Serverless, and cluster mode)",
		tls:         "aws elasticache modify-replication-group --transit-encryption-enabled --transit-encryption-mode preferred, then rediss:// in the URL",
		acl:         "aws elasticache create-user with the access string of docs/guarantees.md, in a user group of the replication group",
		price: func(u *load) []item {
			// A unit of work is a command with up to a kilobyte.
			items := []item{
				{"ElastiCache Serverless, storage", max(u.gb, 0.1) * 0.084 * hoursAMonth},
				{"ElastiCache Serverless, work", u.perSecond * secondsAMonth / 1e6 * 0.0023},
			}
			if around != nil {
				items = append(items, around(u)...)
			}
			return items
		},
	}
}

// google is Memorystore, and what calls it.
func google(around func(u *load) []item) host {
	return host{
		eviction: "gcloud redis instances update NAME --region REGION --update-redis-config maxmemory-policy=noeviction " +
			"(--redis-config maxmemory-policy=noeviction when it is created): CONFIG SET is forbidden on Memorystore",
		persistence: "gcloud redis instances update NAME --region REGION --persistence-mode rdb --rdb-snapshot-period 1h; Memorystore for Valkey has an append-only file",
		cluster:     "use redis+cluster:// with the discovery endpoint (Memorystore Cluster)",
		tls:         "create the instance with --transit-encryption-mode server-authentication, then rediss:// with port 6378, and its CA by --redis-ca",
		acl:         "Memorystore has one user: gcloud redis instances update NAME --region REGION --enable-auth, and let its network reach duly alone",
		price: func(u *load) []item {
			return append([]item{{"Memorystore, Basic", max(u.gb, 1) * 0.049 * hoursAMonth}}, around(u)...)
		},
	}
}

const (
	hoursAMonth   = 730
	secondsAMonth = hoursAMonth * 3600
	ticksAMonth   = hoursAMonth * 60 // one a minute
)

// priced is of when the prices below are, in us-east-1 and us-central1, without free tiers.
const priced = "June 2026"

// onLambda is what ticks that find nothing cost in a function with 256 MB.
func onLambda(u *load) []item {
	return []item{
		{"Lambda and EventBridge Scheduler, ticks", u.ticks*1.20/1e6 + u.ticks*u.tick.Took.Seconds()*0.25*0.0000133334},
		{"SQS, idle polls", 5 * 3 * u.ticks * 0.40 / 1e6},
	}
}

// onFunction is the same with a processor and 512 MiB, of which 100 ms are paid for at least.
func onFunction(u *load) []item {
	seconds := max(u.tick.Took, 100*time.Millisecond).Seconds()
	return []item{{"Cloud Run, ticks", u.ticks*0.40/1e6 + u.ticks*seconds*(0.000024+0.5*0.0000025)}, {"Cloud Scheduler", 0.10}}
}

// onUpstash counts every command, also those within scripts.
func onUpstash(u *load) []item {
	return []item{{"commands", u.perSecond * secondsAMonth / 100_000 * 0.20}, {"storage above 1 GB", max(0, u.gb-1) * 0.25}}
}

// hostFigures are the figures of a host, for programs.
type hostFigures struct {
	Name       string  `json:"name"`
	Commands   int     `json:"commands_per_idle_tick"`
	TickMS     float64 `json:"idle_tick_ms"`
	PerSecond  float64 `json:"commands_per_second"`
	Memory     int64   `json:"memory_bytes"`
	Dollars    float64 `json:"dollars_per_month,omitzero"`
	Items      []item  `json:"items,omitempty"`
	PricesFrom string  `json:"prices_from"`
	Window     int64   `json:"window_seconds"` // since the youngest server started: what a month is worked out from
}

// leastWindow is how long servers have to be up before a month can be estimated from their counters.
const leastWindow = time.Hour

// checkHost makes the checks of one host. Figures are nil if they cannot be had.
func checkHost(ctx context.Context, st *storage.Store, c *dulyfile.File, h *host) ([]finding, *hostFigures) {
	facts, err := st.Redis.Facts(ctx)
	if err != nil {
		return []finding{found("host", checkWarning, "Redis does not say how it is set up: "+err.Error(), "allow INFO to the user, or look at the provider's console")}, nil
	}
	checks := []finding{checkEviction(facts, h), checkPersistence(facts, h), checkTLS(st.Redis, h), checkUser(st.Redis, h), checkCluster(ctx, st)}
	settings := c.Redis
	settings.Logger = nil
	tick, err := redisstore.IdleTick(ctx, settings)
	if err != nil {
		return append(checks, found("tick", checkFailed, "cannot be measured: "+err.Error(), "check Redis, then try again")), nil
	}
	figures := h.figures(facts, tick)
	checks = append(checks, found(
		"tick", checkOK, fmt.Sprintf("one that finds nothing sends %s and takes %s from here", table.Count(tick.Commands, "command"), tick.Took.Round(10*time.Microsecond)), "",
	))
	window := time.Duration(figures.Window) * time.Second
	if window < leastWindow {
		return append(checks, found("cost", checkOK, fmt.Sprintf("not worked out: Redis was started %s ago, which says nothing of a month; ask again %s after its start", window, leastWindow), "")), figures
	}
	parts := make([]string, len(figures.Items))
	for i, part := range figures.Items {
		parts[i] = fmt.Sprintf("%s $%.2f", part.Name, part.Dollars)
	}
	return append(checks, found(
		"cost", checkOK, fmt.Sprintf("about $%.2f a month at %.1f commands a second, as in the %s since Redis was started, and %.1f MB, with a tick a minute and the prices of %s: %s",
			figures.Dollars, figures.PerSecond, window, float64(figures.Memory)/1e6, priced, strings.Join(parts, ", ")), "",
	)), figures
}

// checkCluster says what duly takes the servers for. A node of a cluster whose URL does not say so has been refused before.
func checkCluster(ctx context.Context, st *storage.Store) finding {
	masters, err := st.Masters(ctx)
	switch {
	case err != nil:
		return found("cluster", checkWarning, "does not say how many masters it has: "+err.Error(), "check Redis, then try again")
	case masters == 0:
		return found("cluster", checkOK, "no cluster: one server has all tasks", "")
	default:
		return found("cluster", checkOK, "a cluster of "+table.Count(masters, "master")+", and the URL says so", "")
	}
}

// checkEviction looks at the policy of each server.
func checkEviction(facts []redisstore.Facts, h *host) finding {
	worst := found("eviction", checkOK, "maxmemory-policy is noeviction", "")
	for i := range facts {
		f := &facts[i]
		switch f.Evicts() {
		case server.LosesNothing:
		case server.LosesUnknown:
			if worst.Severity == checkOK {
				worst = found("eviction", checkOK, "the server does not say that it evicts anything", "")
			}
		case server.LosesSome:
			if worst.Severity != checkFailed {
				worst = found("eviction", checkWarning, fmt.Sprintf("%s has maxmemory-policy %s: finished tasks may be forgotten early, live ones are safe", f.Node, f.Eviction), h.eviction)
			}
		default:
			worst = found("eviction", checkFailed, fmt.Sprintf("%s has maxmemory-policy %s, which drops tasks silently when memory is short", f.Node, f.Eviction), h.eviction)
		}
	}
	return worst
}

// checkPersistence says what a restart loses.
func checkPersistence(facts []redisstore.Facts, h *host) finding {
	if h.durable {
		return found("persistence", checkOK, "the provider stores each write", "")
	}
	worst := found("persistence", checkOK, "an append-only file: a crash loses a second of writes at most", "")
	for i := range facts {
		switch f := &facts[i]; f.Forgets() {
		case server.LosesNothing:
		case server.LosesTasks:
			return found("persistence", checkFailed, f.Node+" has neither files nor a replica: a restart loses all tasks", h.persistence)
		case server.LosesSome:
			worst = found("persistence", checkWarning, fmt.Sprintf("%s saves snapshots only (%s): a crash loses what was written since", f.Node, f.Save), h.persistence)
		default:
			worst = found("persistence", checkWarning, fmt.Sprintf("%s has no append-only file, %s, and does not say whether it saves snapshots", f.Node,
				table.Count(f.Replicas, "replica")), h.persistence)
		}
	}
	return worst
}

// checkTLS looks whether the password and the tasks can be read on the way.
func checkTLS(st *redisstore.Store, h *host) finding {
	if st.Secure() || strings.HasPrefix(st.Name(), "unix:") {
		return found("tls", checkOK, "the connection is encrypted, or stays on this machine", "")
	}
	return found("tls", checkWarning, "the connection is not encrypted: the network can read the password and the tasks", h.tls)
}

// checkUser looks whether the user may do more than duly needs.
func checkUser(st *redisstore.Store, h *host) finding {
	if user := st.User(); user != "default" {
		return found("acl", checkOK, fmt.Sprintf("logs in as %q, with every permission that duly needs", user), "")
	}
	return found("acl", checkWarning, "logs in as the default user, which may usually do everything", h.acl)
}

// figures work out a month from what the servers have done since they were started.
func (h *host) figures(facts []redisstore.Facts, tick redisstore.Tick) *hostFigures {
	u := load{ticks: ticksAMonth, tick: tick}
	f := &hostFigures{Name: h.name, Commands: tick.Commands, TickMS: float64(tick.Took.Microseconds()) / 1000, PricesFrom: priced}
	for i := range facts {
		f.Memory += facts[i].Memory
		if up := int64(facts[i].Up / time.Second); i == 0 || up < f.Window {
			f.Window = up
		}
		u.perSecond += float64(facts[i].Commands) / max(1, facts[i].Up.Seconds())
	}
	// One that was started a moment ago has done less than the ticks of a month will.
	u.perSecond = max(u.perSecond, u.ticks*float64(tick.Commands)/secondsAMonth)
	u.gb, f.PerSecond = float64(f.Memory)/1e9, u.perSecond
	if time.Duration(f.Window)*time.Second < leastWindow {
		return f
	}
	f.Items = h.price(&u)
	for _, i := range f.Items {
		f.Dollars += i.Dollars
	}
	return f
}

// hostOf is the host of a name.
func hostOf(name string) (*host, error) {
	h, known := hosts[name]
	if !known {
		return nil, exit.Misuse("pass one of "+hostNames(), "--host: doctor does not know %q", name)
	}
	h.name = name
	return &h, nil
}

// remedy adds what to do on the host to the failure of a store that is a cluster and was not taken for one.
func (h *host) remedy(err error) error {
	f, ok := errors.AsType[*exit.Failure](err)
	if ok && h != nil && f.Todo == "" && strings.Contains(f.Why.Error(), "cluster") {
		f.Todo = h.cluster
	}
	return err
}

// aboutHost are the beginnings of what opening a store logs about things that checkHost looks at itself.
var aboutHost = []string{"Redis may drop", "Redis may evict", "Redis has no persistence", "Redis saves snapshots", "Redis does not report", "Redis has no append-only"}

// withoutHost leaves warnings out that checkHost has with the provider's own remedy.
func withoutHost(list []warning) []warning {
	return slices.DeleteFunc(list, func(w warning) bool {
		return slices.ContainsFunc(aboutHost, func(begin string) bool { return strings.HasPrefix(w.text, begin) })
	})
}
