package memstore

// The store: its configuration, its clock and its lock, which makes each verb one step.

import (
	"cmp"
	"fmt"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Defaults of Config: those of redisstore on a single server.
// They are written here again, as a store must not import another one.
const (
	DefaultPartitions = 1
	DefaultRetention  = 7 * 24 * time.Hour
	DefaultKept       = 10_000
	DefaultKeptBytes  = 64 << 20
	DefaultMaxTasks   = 10_000
	DefaultMaxBytes   = 64 << 20
)

// endedKept is how many ended claims of a partition are remembered, to answer a settle that is sent twice.
// A settle is repeated within a second; a thousand claims last much longer than that.
const endedKept = 1000

// Config says how a store works. Every zero is a good default.
type Config struct {
	Partitions int           // a power of two: DefaultPartitions if zero
	Retention  time.Duration // of finished tasks: DefaultRetention if zero
	Kept       int           // most finished tasks kept of an agent, failed ones counted apart: DefaultKept if zero; see redisstore
	KeptBytes  int           // most bytes of their records, of those that have 4 KiB and more: DefaultKeptBytes if zero; see redisstore
	MaxTasks   int           // most live tasks of one agent: DefaultMaxTasks if zero
	MaxBytes   int           // most bytes of them, of those that have 4 KiB and more: DefaultMaxBytes if zero
	Clock      Clock         `image:"-"` // the clock that decides what is due: the machine's if nil
	FeedSecret []byte        // that of the feed, see [feed.Feed]: made at random if nil
}

// Clock tells the time; core.Clock is one.
// It is an interface of its own, as this package imports core/store alone.
type Clock interface{ Now() time.Time }

// machine is the clock of the machine.
type machine struct{}

// Now is time.Now.
func (machine) Now() time.Time { return time.Now() } //nolint:forbidigo // the one place of this package that reads it

// Store is a [store.Store] in memory. It is safe for concurrent use.
type Store struct {
	config Config `image:"-"`

	// mu guards everything below. One lock for all partitions: an embedded store
	// is not the bottleneck of its process.
	mu        sync.Mutex `image:"-"`
	parts     []*partition
	watchers  *watchers       `image:"-"`
	processes map[string]said `image:"-"`
	booked    bookings
	receipts  map[string]receipt
	slots     map[int64]slot // counters of the last day, as Redis has them
	hours     map[int64]slot // the same of each hour of the last days
	feed      events         `image:"-"`
	sweepAt   int            // so many receipts are cleaned up
	outputs
}

// Both interfaces are checked here, as nothing in this package uses them.
var (
	_ store.Store = (*Store)(nil)
	_ store.Waker = (*Store)(nil)
)

// New makes an empty store. It panics if config.Partitions is no power of two, as that is a mistake in the program.
func New(config Config) *Store {
	config = config.withDefaults()
	if config.Partitions < 1 || config.Partitions&(config.Partitions-1) != 0 {
		// store.PartitionOf needs a power of two to spread agents.
		panic(fmt.Sprintf("memstore: Partitions must be a power of two, not %d", config.Partitions))
	}
	s := &Store{config: config, parts: make([]*partition, config.Partitions), watchers: &watchers{channels: map[chan store.Wakeup]struct{}{}}, processes: map[string]said{}, receipts: map[string]receipt{}, slots: map[int64]slot{}, hours: map[int64]slot{}, feed: events{secret: config.FeedSecret}}
	s.outputs = outputs{of: s, ofAgents: map[string]map[string]*printed{}}
	for i := range s.parts {
		s.parts[i] = newPartition(s, i)
	}
	return s
}

// withDefaults has a default in place of each zero.
func (c Config) withDefaults() Config {
	c.Partitions = cmp.Or(c.Partitions, DefaultPartitions)
	c.Retention = cmp.Or(c.Retention, DefaultRetention)
	c.Kept, c.KeptBytes = cmp.Or(c.Kept, DefaultKept), cmp.Or(c.KeptBytes, DefaultKeptBytes)
	c.MaxTasks, c.MaxBytes = cmp.Or(c.MaxTasks, DefaultMaxTasks), cmp.Or(c.MaxBytes, DefaultMaxBytes)
	if c.Clock == nil {
		c.Clock = machine{}
	}
	return c
}

// Partitions is the number of partitions.
func (s *Store) Partitions() int { return len(s.parts) }

// now is the time by which everything here is decided, in whole milliseconds as in Redis.
func (s *Store) now() moment.Millis { return moment.Millis(s.config.Clock.Now().UnixMilli()) }

// partitionOf is the partition of an agent.
func (s *Store) partitionOf(agent string) *partition {
	return s.parts[store.PartitionOf(agent, len(s.parts))]
}
