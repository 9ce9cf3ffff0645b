package redisstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// vault is where a password is kept: what it was when it was last read, and how often it was.
type vault struct {
	current atomic.Value // string
	read    atomic.Value // string
	reads   atomic.Int64
	sealed  atomic.Bool
}

func newVault(password string) *vault {
	v := new(vault)
	v.current.Store(password)
	v.read.Store("")
	return v
}

func (v *vault) credentials(_ context.Context, renew bool) (user, password string, err error) {
	if v.sealed.Load() {
		return "", "", errors.New("the vault is sealed")
	}
	if renew || v.reads.Load() == 0 {
		v.reads.Add(1)
		v.read.Store(v.current.Load())
	}
	return "default", v.read.Load().(string), nil
}

// rotate changes the password of a server, and ends the connections that were made with the old one.
func rotate(t *testing.T, srv *redistest.Server, password string) {
	t.Helper()
	c := srv.Client(t)
	require.NoError(t, c.Do(t.Context(), "CONFIG", "SET", "requirepass", password).Err())
	srv.Password = password
	require.NoError(t, srv.Client(t).Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err())
}

// A password that is changed while a store is open is read again, once, when the server refuses the old one.
func TestCredentialsAreRenewed(t *testing.T) {
	t.Parallel()
	srv := redistest.StartTCP(t, "--requirepass", "first")
	srv.Password = "first"
	v := newVault("first")
	st := open(t, redisstore.Config{URL: srv.URL, Credentials: v.credentials})
	submit := func(id string) error {
		_, err := st.Submit(t.Context(), []store.Submission{sub("a", id)})
		return err
	}
	require.NoError(t, submit("1"))
	assert.EqualValues(t, 1, v.reads.Load())

	v.current.Store("second")
	rotate(t, srv, "second")
	require.NoError(t, submit("2"), "the call that was refused is repeated")
	require.NoError(t, submit("3"))
	assert.EqualValues(t, 2, v.reads.Load(), "nobody reads it for each call")

	rotate(t, srv, "third") // and nobody has put it into the vault
	err := submit("4")
	require.ErrorContains(t, err, "WRONGPASS")
	assert.NotContains(t, err.Error(), "second")
	_, err = st.Look(t.Context(), []store.LookRequest{{Kinds: []string{"k"}}})
	require.ErrorContains(t, err, "WRONGPASS", "a pipeline that was never sent has an error too")
	before := v.reads.Load()
	for range 200 {
		require.Error(t, submit("4"))
	}
	assert.Less(t, v.reads.Load()-before, int64(100), "calls that are refused one after the other do not all ask")

	v.current.Store("third")
	require.Eventually(t, func() bool { return submit("4") == nil }, 20*time.Second, 50*time.Millisecond)
}

func TestCredentialsOfAClusterAreRenewed(t *testing.T) {
	t.Parallel()
	srv := redistest.StartCluster(t)
	v := newVault("second")
	v.reads.Store(1) // it remembers a password that the server does not know
	rotate(t, srv, "second")
	st, err := redisstore.Open(t.Context(), redisstore.Config{URL: "redis+cluster://" + srv.Addr, Credentials: v.credentials, Partitions: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, st.Close()) }()
	wholeLife(t, st)
}

func TestCredentialsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	v := newVault("x")
	v.sealed.Store(true)
	_, err := redisstore.Open(t.Context(), redisstore.Config{URL: redistest.Start(t).URL, Credentials: v.credentials})
	require.ErrorContains(t, err, "the vault is sealed")
}
