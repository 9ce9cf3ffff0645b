package memstore

// The store: its configuration, its clock and its lock, which makes each verb one step.

import (
	"fmt"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Defaults of Config: those of redisstore.
const (
	DefaultPartitions = 8
	DefaultRetention  = 7 * 24 * time.Hour
	DefaultKept       = 10_000
	DefaultKeptBytes  = 64 << 20
	DefaultMaxTasks   = 10_000
	DefaultMaxBytes   = 64 << 20
)

// endedKept is how many ended claims of a partition are remembered, to answer a settle that is sent twice.
const endedKept = 1000

// Config says how a store works. Every zero is a good default.
type Config struct {
	Partitions int           // a power of two: DefaultPartitions if zero
	Retention  time.Duration // of finished tasks: DefaultRetention if zero
	Kept       int           // most finished tasks kept of an agent, failed ones counted apart: DefaultKept if zero; see redisstore
	KeptBytes  int           // most bytes of their records, of those that have 4 KiB and more: DefaultKeptBytes if zero; see redisstore
	MaxTasks   int           // most live tasks of one agent: DefaultMaxTasks if zero
	MaxBytes   int           // most bytes of them, of those that have 4 KiB and more: DefaultMaxBytes if zero
	Clock      Clock         // the clock that decides what is due: that of the machine if nil
}

// Clock tells the time; core.Clock is one.
type Clock interface{ Now() time.Time }

// machine is the clock of the machine.
type machine struct{}

// Now is time.Now.
func (machine) Now() time.Time { return time.Now() } //nolint:forbidigo // the one place of this package that reads it

// Store is a [store.Store] in memory. It is safe for concurrent use.
type Store struct {
	config Config

	mu        sync.Mutex
	parts     []*partition
	watchers  map[chan store.Wakeup]struct{}
	processes map[string]said
}

var (
	_ store.Store = (*Store)(nil)
	_ store.Waker = (*Store)(nil)
)

// New makes an empty store. It panics if config.Partitions is no power of two, as that is a mistake in the program.
func New(config Config) *Store {
	if config.Partitions == 0 {
		config.Partitions = DefaultPartitions
	}
	if config.Partitions < 1 || config.Partitions&(config.Partitions-1) != 0 {
		panic(fmt.Sprintf("memstore: Partitions must be a power of two, not %d", config.Partitions))
	}
	if config.Retention == 0 {
		config.Retention = DefaultRetention
	}
	if config.Kept == 0 {
		config.Kept = DefaultKept
	}
	if config.KeptBytes == 0 {
		config.KeptBytes = DefaultKeptBytes
	}
	if config.MaxTasks == 0 {
		config.MaxTasks = DefaultMaxTasks
	}
	if config.MaxBytes == 0 {
		config.MaxBytes = DefaultMaxBytes
	}
	if config.Clock == nil {
		config.Clock = machine{}
	}
	s := &Store{config: config, parts: make([]*partition, config.Partitions), watchers: map[chan store.Wakeup]struct{}{}, processes: map[string]said{}}
	for i := range s.parts {
		s.parts[i] = newPartition(s, i)
	}
	return s
}

// Partitions is the number of partitions.
func (s *Store) Partitions() int { return len(s.parts) }

func (s *Store) now() store.Millis { return store.Millis(s.config.Clock.Now().UnixMilli()) }

func (s *Store) partitionOf(agent string) *partition {
	return s.parts[store.PartitionOf(agent, len(s.parts))]
}
