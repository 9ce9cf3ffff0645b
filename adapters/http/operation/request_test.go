package operation_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// What a client sends of a profile is all that a profile says: a field that it left out would be lifted in silence.
func TestAProfileIsSentWhole(t *testing.T) {
	t.Parallel()
	p := core.Profile{
		Zone: "Europe/Berlin", Quiet: []core.QuietHours{{From: "22:00", To: "07:00"}}, Urgent: true, Labels: map[string]string{"a": "b"},
		Limits:  []core.Limit{{About: core.LimitTarget{Kind: "k"}, Concurrency: 1}},
		Budgets: []core.Budget{{About: core.BudgetTarget{Unit: "usd", Per: core.PerDay}, Amount: 1}},
		Quota:   store.Quota{Live: 1, Interval: time.Minute}, Tenant: "acme", Revision: 7,
	}
	for i := range reflect.TypeOf(p).NumField() {
		if name := reflect.TypeOf(p).Field(i).Name; name != "Agent" && name != "Used" { // the path has the one, and stores the other
			assert.False(t, reflect.ValueOf(p).Field(i).IsZero(), "the sample has nothing in %s: it proves nothing", name)
		}
	}
	sent, err := json.Marshal(operation.ProfileOf(&p))
	require.NoError(t, err)
	var read core.Profile
	require.NoError(t, read.Read(sent))
	assert.Equal(t, p, read)
}
