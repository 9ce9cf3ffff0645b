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
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/schedule"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What New refuses is typed: programs learn the field and its value without reading a sentence.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	_, err := core.New(nil, core.Config{})
	require.ErrorContains(t, err, "a store is required")
	kinds := func(name string, k core.KindConfig) core.Config {
		return core.Config{Kinds: map[string]core.KindConfig{name: k}}
	}
	for _, c := range []struct {
		config core.Config
		field  string
		value  any
		reason string
	}{
		{core.Config{Concurrency: -1}, "Concurrency", -1, "must be between 1 and 100000, not -1"},
		{core.Config{Concurrency: 3, Urgent: 4}, "Urgent", 4, "must be less than the concurrency (3), not 4"},
		{core.Config{Serial: "kind"}, "Serial", core.Serial("kind"), `must be task or agent, not "kind"`},
		{core.Config{Margin: -1}, "Margin", time.Duration(-1), "must not be negative, not -1ns"},
		{core.Config{MaxCrashes: -1}, "MaxCrashes", -1, "must be at least 1, not -1"},
		{core.Config{MaxPayload: -1}, "MaxPayload", -1, "must be between 1 and 16777216 bytes, not -1"},
		{core.Config{MaxResult: 1 << 30}, "MaxResult", 1 << 30, "must be between 1 and 16777216 bytes, not 1073741824"},
		{core.Config{Default: core.KindConfig{Lease: 1}}, "Default.Lease", time.Duration(1), "must be between 100ms and 1h0m0s, not 1ns"},
		{core.Config{Default: core.KindConfig{Slots: -1}}, "Default.Slots", -1, "must not be negative, not -1"},
		{kinds("a b", core.KindConfig{}), "Kinds", "a b", `"a b" has the character ' ': letters, digits and _.:/- are allowed`},
		{kinds("a", core.KindConfig{MaxAttempts: -1}), `Kinds["a"].MaxAttempts`, -1, "must be between 1 and 1000, not -1"},
		{kinds("a", core.KindConfig{MaxBackoff: -1}), `Kinds["a"].MaxBackoff`, time.Duration(-1), "must be at least the backoff (1s), not -1ns"},
		{kinds("a", core.KindConfig{Backoff: time.Hour, MaxBackoff: time.Minute}), `Kinds["a"].MaxBackoff`, time.Minute, "must be at least the backoff (1h0m0s), not 1m0s"},
		{
			kinds("a", core.KindConfig{Activity: &core.Activity{Dimensions: 4}}), `Kinds["a"].Activity.Dimensions`, 4,
			"must be 1, 2 or 3, not 4",
		},
	} {
		_, err := core.New(memstore.New(memstore.Config{Partitions: 8}), c.config)
		var wrong *core.ConfigError
		require.ErrorAs(t, err, &wrong, c.field)
		assert.Equal(t, core.ConfigError{Field: c.field, Value: c.value, Reason: c.reason}, *wrong)
		require.EqualError(t, err, "duly: "+c.field+" "+c.reason)
		assert.Equal(t, core.CodeInvalid, core.CodeOf(err))
	}
}

func TestHandlePanics(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{Partitions: 8}), core.Config{})
	require.NoError(t, err)
	core.Handle(s, "k", nothing)
	assert.PanicsWithValue(t, `duly: Handle: the kind "k" already has a handler`, func() { core.Handle(s, "k", nothing) })
	assert.Panics(t, func() { core.Handle(s, "", nothing) })
	assert.Panics(t, func() {
		core.HandleBatch(s, "a b", func(context.Context, []*core.Task[note]) []error { return nil })
	})
	const missing = `duly: Handle: the handler of the kind "nil" is nil`
	assert.PanicsWithValue(t, missing, func() { core.Handle[note](s, "nil", nil) })
	assert.PanicsWithValue(t, missing, func() { core.HandleBatch[note](s, "nil", nil) })
	assert.PanicsWithValue(t, `duly: Gate: the function for the kind "nil" is nil`, func() { core.Gate[bool](s, "nil", nil) })
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
		{&core.ConfigError{Field: "x", Reason: "y"}, core.CodeInvalid},
		{&schedule.ParseError{Field: "cron", Reason: "y"}, core.CodeInvalid},
		{&store.LimitError{Agent: "a", Limit: 1}, core.CodeLimit},
		{&core.RunsError{Count: 1}, core.CodeRunsFailed},
		{fmt.Errorf("x: %w", core.ErrNotFound), core.CodeNotFound},
		{errors.Join(core.ErrLeaseLost, errors.New("x")), core.CodeLeaseLost},
		{&store.Error{Verb: "submit", Err: store.ErrFull}, core.CodeStoreFull},
		{&store.Error{Verb: "submit", Err: errors.New("EOF")}, core.CodeUnavailable},
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
	err := &core.RunsError{Count: 7, Failures: []model.RunFailure{{Agent: "a", ID: "1", Kind: "k", Err: errBoom}}}
	assert.Equal(t, `7 run(s) failed: 1 of agent "a" (k): boom; and 6 more`, err.Error())
	assert.ErrorIs(t, err, errBoom)
}
