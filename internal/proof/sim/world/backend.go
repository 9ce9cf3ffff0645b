package world

// The stores that a history can be played on.

import (
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Memory opens a store in memory.
func Memory(o *Settings, clock Clock) (store.Store, error) {
	return memstore.New(memstore.Config{Partitions: o.Partitions, Retention: o.Retention, Kept: o.Kept, MaxTasks: o.MaxTasks, Clock: clock}), nil
}
