package cli

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// config is what the file says.
type config struct {
	redis        redisstore.Config
	name         string // of the process, in the history of tasks
	concurrency  int
	urgent       int // slots; none if negative
	maxAbandoned int
	serial       core.Serial
	maxCrashes   int
	lease        time.Duration
	http         string
	tokenEnv     string
	handlers     []handlerConfig
	tasks        []fileTask
}

// mostPartitions is what a store takes.
const mostPartitions = 1024

// loadConfig reads the file that is named by the options, if any, and puts the options over it. It checks all there is
// to check without a store.
func loadConfig(ctx context.Context, o *options) (*config, error) {
	c := &config{}
	if o.file != "" {
		data, err := os.ReadFile(o.file)
		if err != nil {
			return nil, usage("name a file that can be read", "%w", err)
		}
		root, err := parseYAML(o.file, data)
		if err != nil {
			return nil, err
		}
		if err := c.read(root); err != nil {
			return nil, err
		}
	}
	c.override(o)
	return c, c.tryTasks(ctx)
}

func (c *config) read(root place) error {
	var handlers, tasks place
	keep := func(into *place) reader { return func(p place) error { *into = p; return nil } }
	if err := root.read(map[string]reader{
		"redis": text(&c.redis.URL), "prefix": text(&c.redis.Prefix), "partitions": integer(&c.redis.Partitions),
		"redis_ca": text(&c.redis.CAFile), "redis_cert": text(&c.redis.CertFile), "redis_key": text(&c.redis.KeyFile),
		"retention": duration(&c.redis.Retention), "kept": integer(&c.redis.Kept), "kept_bytes": integer(&c.redis.KeptBytes),
		"max_tasks": integer(&c.redis.MaxTasks), "max_bytes": integer(&c.redis.MaxBytes),
		"name": text(&c.name), "concurrency": integer(&c.concurrency), "serial": text((*string)(&c.serial)),
		"urgent_slots": orNone(&c.urgent), "max_abandoned": atLeastOne(&c.maxAbandoned),
		"max_crashes": integer(&c.maxCrashes), "lease": duration(&c.lease), "http": text(&c.http),
		"token_env": text(&c.tokenEnv), "handlers": keep(&handlers), "tasks": keep(&tasks),
	}); err != nil {
		return err
	}
	if n := c.redis.Partitions; n < 0 || n > mostPartitions || n&(n-1) != 0 {
		return root.of("partitions").fail("must be a power of two up to %d, not %d", mostPartitions, n)
	}
	if err := c.checkLimits(root); err != nil {
		return err
	}
	if c.redis.Retention != 0 && c.redis.Retention < redisstore.ShortestRetention {
		return root.of("retention").fail("must be at least %s, not %s", redisstore.ShortestRetention, c.redis.Retention)
	}
	if err := check(root, core.Config{
		Concurrency: c.concurrency, Urgent: c.urgent, Serial: c.serial, MaxCrashes: c.maxCrashes, Default: core.KindConfig{Lease: c.lease},
	}); err != nil {
		return err
	}
	if err := c.readHandlers(handlers); err != nil {
		return err
	}
	return c.readTasks(tasks)
}

// checkLimits refuses bounds of what is stored that no store takes; zero is the default.
func (c *config) checkLimits(root place) error {
	for _, limit := range []struct {
		key         string
		least, have int
	}{
		{"kept", 1, c.redis.Kept},
		{"kept_bytes", redisstore.LeastBytes, c.redis.KeptBytes},
		{"max_tasks", 1, c.redis.MaxTasks},
		{"max_bytes", redisstore.LeastBytes, c.redis.MaxBytes},
	} {
		if limit.have != 0 && limit.have < limit.least {
			return root.of(limit.key).fail("must be at least %d, not %d", limit.least, limit.have)
		}
	}
	return nil
}

// keys are the keys of the file for the fields of core.Config and core.KindConfig. A kind is a key itself.
var keys = map[string]string{
	"Concurrency": "concurrency", "Serial": "serial", "Urgent": "urgent_slots", "Slots": "slots", "Timeout": "timeout", "Lease": "lease", "MaxAttempts": "max_attempts",
	"Backoff": "backoff", "MaxBackoff": "max_backoff", "MaxCrashes": "max_crashes", "Grace": "grace", "CatchUp": "catch_up",
	"Quiet": "quiet", "Delay": "delay", "Mode": "mode", "MaxWait": "max_wait", "MinInterval": "min_interval", "Dimensions": "dimensions", "Level": "level",
}

// check asks core whether settings make sense, so that their bounds stand in one place. The error begins with the name
// of a field: it is moved to the key that set it.
func check(p place, settings core.Config) error {
	_, err := core.New(memstore.New(memstore.Config{}), settings)
	if err == nil {
		return nil
	}
	why := strings.TrimPrefix(err.Error(), "duly: ")
	field, rest, _ := strings.Cut(why, " ")
	last := strings.LastIndexByte(field, '.') + 1
	name := keys[field[last:]]
	if strings.HasSuffix(field[:last], "].Activity.") {
		p = p.of("activity")
	}
	for _, other := range []string{"Backoff", "Concurrency", "Delay", "Quiet"} {
		rest = strings.ReplaceAll(rest, other, keys[other])
	}
	if at := p.of(name); at != p {
		return at.fail("%s", rest)
	}
	return p.fail("%s", strings.TrimSpace(name+" "+rest))
}
