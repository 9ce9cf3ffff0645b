package redisstore_test

import (
	"testing"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/storetest"
	"github.com/seed-6f6f2c11/duly/core/storetest/equal"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// same drives a store on Redis and one in memory with the same calls.
func same(t *testing.T, url string, o storetest.Options, data []byte) int {
	t.Helper()
	clock := storetest.NewClock()
	mem := memstore.New(memstore.Config{
		Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, KeptBytes: o.KeptBytes, MaxTasks: o.MaxTasks, MaxBytes: o.MaxBytes, Clock: clock,
	})
	return equal.Stores(t, clock, mem, still(t, redisstore.Config{URL: url}, clock, false, o), data)
}

func TestEqualToMemory(t *testing.T) {
	t.Parallel()
	srv := redistest.Start(t)
	equal.Sequences(t, func(t *testing.T, o storetest.Options, data []byte) int {
		t.Helper()
		return same(t, srv.URL, o, data)
	})
}

func FuzzEqualToMemory(f *testing.F) {
	srv := redistest.Start(f)
	for seed := range uint64(8) {
		f.Add(byte(seed), equal.Random(seed, 400))
	}
	f.Fuzz(func(t *testing.T, options byte, data []byte) {
		if len(data) > 4000 {
			return
		}
		same(t, srv.URL, equal.Options[int(options)%len(equal.Options)], data)
	})
}
