package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
)

// pagesStore is a store whose partitions have pages with two faults each.
type pagesStore struct {
	core.Store

	asked []audit.Page
	fail  error
}

func (s *pagesStore) Audit(_ context.Context, pages []audit.Page) ([]audit.Result, error) {
	a := pages[0]
	s.asked = append(s.asked, a)
	if s.fail != nil && len(s.asked) == 3 {
		return nil, s.fail
	}
	next := ""
	if a.Cursor == "" {
		next = "second"
	}
	return []audit.Result{{Next: next, Tasks: 100, Faults: []audit.Fault{
		{Agent: fmt.Sprint(a.Partition), ID: a.Cursor, Code: audit.Lost}, {Agent: "z", Code: audit.Unreadable},
	}}}, nil
}

func TestAuditGoesThroughAllPages(t *testing.T) {
	t.Parallel()
	st := &pagesStore{Store: memstore.New(memstore.Config{Partitions: 64})}
	s, err := core.New(st, core.Config{})
	require.NoError(t, err)
	told := 0
	report, err := s.Audit(t.Context(), inspect.AuditOptions{Repair: true, Progress: func(r inspect.AuditReport) { told++; assert.Equal(t, 100*told, r.Tasks) }})
	require.NoError(t, err)
	assert.Equal(t, 128, told)
	assert.Equal(t, []int{12_800, 256, 128, inspect.MaxFaults}, []int{report.Tasks, report.Found, report.Repairable, len(report.Faults)})
	assert.Equal(t, []audit.Page{{Repair: true}, {Cursor: "second", Repair: true}, {Partition: 1, Repair: true}}, st.asked[:3])
	data, err := report.MarshalJSON()
	require.NoError(t, err)
	assert.Contains(t, string(data), `{"tasks":12800,"found":256,"repairable":128,"faults":[{"agent_id":"0","code":"lost"},`)

	st.asked = nil
	report, next, err := s.AuditStep(t.Context(), inspect.AuditStep{Pages: 3})
	require.NoError(t, err)
	assert.Equal(t, []any{300, "1.second"}, []any{report.Tasks, next})
	report, next, err = s.AuditStep(t.Context(), inspect.AuditStep{Pages: 1000, Cursor: next})
	require.NoError(t, err)
	assert.Equal(t, []any{inspect.MaxFaults, inspect.MaxFaults, "26.second"}, []any{report.Found, len(report.Faults), next}, "no fault of a step is left out")
	_, next, err = s.AuditStep(t.Context(), inspect.AuditStep{Cursor: "63.second"})
	require.NoError(t, err)
	assert.Empty(t, next)

	st.asked, st.fail = nil, errors.New("away")
	report, err = s.Audit(t.Context(), inspect.AuditOptions{})
	require.ErrorIs(t, err, st.fail)
	assert.Equal(t, 200, report.Tasks, "what was seen until then")
}
