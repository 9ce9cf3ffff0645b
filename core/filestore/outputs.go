package filestore

// The output of runs: in the journal as everything else that lasts.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// output.Keeper is optional for a store; this line has the compiler check it.
var _ output.Keeper = (*Store)(nil)

// outputs are those of a store.
type outputs struct{ of *Store }

// Print adds chunks; see [output.Keeper]. A full disk takes none: its reserve is for what ends runs.
func (o outputs) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	if err := o.of.hasRoom("print"); err != nil {
		return nil, err
	}
	return change(ctx, o.of, prints, chunks)
}

// Printed returns what is kept of a task; see [output.Keeper].
func (o outputs) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	return look(ctx, o.of, "read", func(m *memstore.Store, ctx context.Context, id string) ([]output.Run, error) {
		return m.Printed(ctx, agent, id)
	}, id)
}
