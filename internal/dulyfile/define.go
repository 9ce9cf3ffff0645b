package dulyfile

// Define: the tasks and profiles of the file, kept in a store that may lose them.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"

	"github.com/seed-6f6f2c11/duly/core"
)

// Define applies the file as each start does, and again whenever the store has lost it, as a Redis does that comes back empty: before anything
// else starts. It returns what the first time has changed. Tasks that a full store refuses are tried again later.
func (f *File) Define(ctx context.Context, s *core.Scheduler, logger *slog.Logger) (done Applied, err error) {
	if len(f.Tasks)+len(f.Agents) == 0 { // limits and budgets are the scheduler's own
		return done, nil
	}
	first := true
	err = s.Define(ctx, core.Definitions{Version: f.version(), Apply: func(ctx context.Context) error {
		applied, err := f.ApplyWith(ctx, s, ApplyOptions{Each: LogConflicts(ctx, logger)})
		if first {
			done, first = applied, false
		}
		return err
	}})
	return done, err
}

// version names what the file declares: its text, and what may be set beside it.
func (f *File) version() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%x %q %q", f.sum, f.Owner, f.Defaults))
	return hex.EncodeToString(sum[:])
}
