package world_test

// The table of features: that no field of a task and no verb of the store is without a row, and that each row does what it says.

import (
	"reflect"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
	"github.com/seed-6f6f2c11/duly/core/store/window"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/stores"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
	"github.com/seed-6f6f2c11/duly/internal/race"
)

// without are the fields of tasks and the verbs of stores that no row generates, and why.
var without = map[string]string{
	"Partitions": "it asks nothing of a store",
	"Turn":       "the bus makes it of Settle and Claim, each of which may be lost by itself",

	"Zone":     "the times of zones are compared with a search minute by minute in core/schedule",
	"DayMatch": "as Zone",
	"Gap":      "as Zone",

	"Manual":       "a task without a time is one that waits for an order to run, which every history gives",
	"UniqueKey":    "core makes the id of it, and no store hears of it",
	"Preset":       "core fills in other fields from it before anything is asked",
	"When":         "as Preset",
	"PausedReason": "it is a text for people",
}

// unbuilt are those that ought to have a row and have none yet. It only becomes shorter.
var unbuilt = []string{
	"Paused", "Timeout", "Lease", "Submission.Hold",
	"Forget",
	"Stamp", "Stamped",
}

// every is all that has to have a row: fields of a task, fields of what a store gets of it, and verbs.
func every() (fields, verbs []string) {
	add := func(t reflect.Type, prefix string) {
		for f := range t.Fields() {
			if f.IsExported() {
				fields = append(fields, prefix+f.Name)
			}
		}
	}
	add(reflect.TypeFor[core.NewTask](), "")
	add(reflect.TypeFor[store.Submission](), "Submission.")
	for _, t := range []reflect.Type{reflect.TypeFor[store.Store](), reflect.TypeFor[window.Recent](), reflect.TypeFor[output.Keeper]()} {
		for m := range t.Methods() {
			verbs = append(verbs, m.Name)
		}
	}
	return fields, verbs
}

// Each field of a task and each verb of the store has a row, and none of the rows is about something that does not exist. A feature that core has and the
// simulation does not try begins here: see CONTRIBUTING.md.
func TestEveryFieldAndVerbHasARow(t *testing.T) {
	t.Parallel()
	has := map[string]string{}
	for _, row := range world.Features() {
		for _, name := range append(row.Fields, row.Verbs...) {
			has[name] = row.Name
		}
	}
	fields, verbs := every()
	known := map[string]bool{}
	for _, name := range append(fields, verbs...) {
		known[name] = true
		reason := without[name] != "" || slices.Contains(unbuilt, name)
		assert.NotEqual(t, has[name] != "", reason, "%s needs a row in the table of features, or a reason why it has none, and not both", name)
	}
	for name, row := range has {
		assert.True(t, known[name], "the row %q is about %s, which does not exist", row, name)
	}
	for name := range without {
		assert.True(t, known[name], "%s does not exist", name)
	}
}

// What a row says that it generates comes up in some history, and each of its invariants has a fault.
func TestEachRowGeneratesWhatItSays(t *testing.T) { //nolint:paralleltest // it plays on one processor
	if race.Enabled {
		t.Skip("it looks at histories that TestHistories plays: .ci/run makes it without the race detector")
	}
	seen := map[string]bool{}
	missing := func() (all []string) {
		for _, row := range world.Features() {
			for _, name := range append(row.Fields, row.Verbs...) {
				if !seen[name] {
					all = append(all, row.Name+": "+name)
				}
			}
		}
		return all
	}
	for seed := uint64(0); seed < 600 && len(missing()) > 0; seed++ {
		plan := world.PlanOf(seed)
		for i := range plan.Requests {
			for _, def := range plan.Requests[i].Tasks {
				v := reflect.ValueOf(def.NewTask)
				for k := range v.NumField() {
					if v.Type().Field(k).IsExported() && !v.Field(k).IsZero() {
						seen[v.Type().Field(k).Name] = true
					}
				}
			}
		}
		for name := range world.Play(t, plan, stores.Memory, false).Called {
			seen[name] = true
		}
	}
	assert.Empty(t, missing())
}
