package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := core.New(nil, core.Config{})
	require.ErrorContains(t, err, "a store is required")
	for _, c := range []struct {
		config core.Config
		want   string
	}{
		{core.Config{Concurrency: -1}, "Concurrency must be"},
		{core.Config{Margin: -1}, "Margin must"},
		{core.Config{MaxCrashes: -1}, "MaxCrashes must"},
		{core.Config{MaxPayload: -1}, "MaxPayload must"},
		{core.Config{MaxResult: 1 << 30}, "MaxResult must"},
		{core.Config{Default: core.KindConfig{Lease: 1}}, "Default.Lease must"},
		{core.Config{Kinds: map[string]core.KindConfig{"a b": {}}}, "Kinds"},
		{core.Config{Kinds: map[string]core.KindConfig{"a": {MaxAttempts: -1}}}, `Kinds["a"].MaxAttempts must`},
		{core.Config{Kinds: map[string]core.KindConfig{"a": {MaxBackoff: -1}}}, `Kinds["a"].MaxBackoff must`},
		{core.Config{Kinds: map[string]core.KindConfig{"a": {Backoff: time.Hour, MaxBackoff: time.Minute}}}, `Kinds["a"].MaxBackoff must`},
	} {
		_, err := core.New(memstore.New(memstore.Config{}), c.config)
		require.ErrorContains(t, err, "duly: "+c.want)
	}
}

func TestHandlePanics(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", nothing)
	assert.PanicsWithValue(t, `duly: Handle: the kind "k" has a handler already`, func() { core.Handle(s, "k", nothing) })
	assert.Panics(t, func() { core.Handle(s, "", nothing) })
	assert.Panics(t, func() {
		core.HandleBatch(s, "a b", func(context.Context, []*core.Task[note]) []error { return nil })
	})
	const missing = `duly: Handle: the handler of the kind "nil" is nil`
	assert.PanicsWithValue(t, missing, func() { core.Handle[note](s, "nil", nil) })
	assert.PanicsWithValue(t, missing, func() { core.HandleBatch[note](s, "nil", nil) })
	assert.PanicsWithValue(t, `duly: Gate: the function for the kind "nil" is nil`, func() { core.Gate(s, "nil", nil) })
	core.Handle(s, "nil", nothing) // nothing was registered
}

func TestCodes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		code core.Code
	}{
		{nil, ""},
		{&core.InvalidError{Field: "x", Reason: "y"}, core.CodeInvalid},
		{&core.LimitError{Agent: "a", Limit: 1}, core.CodeLimit},
		{&core.RunsError{Count: 1}, core.CodeRunsFailed},
		{fmt.Errorf("x: %w", core.ErrNotFound), core.CodeNotFound},
		{errors.Join(core.ErrLeaseLost, errors.New("x")), core.CodeLeaseLost},
		{&core.StoreError{Verb: "submit", Err: core.ErrStoreFull}, core.CodeStoreFull},
		{&core.StoreError{Verb: "submit", Err: errors.New("EOF")}, core.CodeUnavailable},
		{errors.New("else"), core.CodeInternal},
	} {
		assert.Equal(t, c.code, core.CodeOf(c.err), "%v", c.err)
		if c.err != nil {
			assert.NotEmpty(t, c.err.Error())
		}
	}
}

func TestRunsErrorNamesTheFirst(t *testing.T) {
	t.Parallel()
	err := &core.RunsError{Count: 7, Failures: []core.RunFailure{{Agent: "a", ID: "1", Kind: "k", Err: errBoom}}}
	assert.Equal(t, `7 run(s) failed: 1 of agent "a" (k): boom; and 6 more`, err.Error())
	assert.ErrorIs(t, err, errBoom)
}
