package history_test

// A store in a folder whose process dies while calls are under way.

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/filestore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest"
)

// mortal is a store in a folder. Its clients live on when it dies, as they would behind a server.
type mortal struct {
	storetest.Spy

	t      *testing.T
	config filestore.Config
	file   *filestore.Store
	calls  sync.RWMutex // held by each call, and by a death for the moment in which the next process begins
	dead   atomic.Bool
}

// errDead is the answer to a call that the death of the process has left without one.
var errDead = &store.Error{Verb: "call", Err: errors.New("the process has died")}

func newMortal(t *testing.T) *mortal {
	t.Helper()
	m := &mortal{t: t, config: filestore.Config{Dir: t.TempDir(), Elsewhere: true, Reserve: 4096, SnapshotAfter: 1 << 30, Logger: slog.New(slog.DiscardHandler)}}
	m.open()
	m.Before = func(context.Context, string) error {
		if m.dead.Load() {
			return errDead
		}
		m.calls.RLock()
		return nil
	}
	m.After = func(context.Context, string, any) error {
		defer m.calls.RUnlock()
		if m.dead.Load() {
			return errDead // it may have been done
		}
		return nil
	}
	t.Cleanup(func() { assert.NoError(t, m.file.Close()) })
	return m
}

func (m *mortal) open() {
	var err error
	m.file, err = filestore.Open(m.config)
	require.NoError(m.t, err)
	m.Store = m.file
}

// die ends the process: nobody hears from it any more, whatever it still does. The next one has a copy of its files.
func (m *mortal) die() {
	m.dead.Store(true)
	m.calls.Lock()
	defer m.calls.Unlock()
	old, dir := m.file, m.t.TempDir()
	require.NoError(m.t, os.CopyFS(dir, os.DirFS(m.config.Dir)))
	m.config.Dir = dir
	m.open()
	require.NoError(m.t, old.Close())
	m.dead.Store(false)
}

// Partitions never changes, and is asked without a call of the spy.
func (*mortal) Partitions() int { return 1 }
