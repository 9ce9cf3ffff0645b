package core_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
)

// A time without an offset is one of the zone that is said beside it: the first of two, and the end of a gap.
func TestAtInAZone(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"at":"2026-12-01T09:00:00","zone":"Europe/Berlin"}`:       "2026-12-01T08:00:00Z",
		`{"zone":"Europe/Berlin","at":"2026-07-01 09:00"}`:          "2026-07-01T07:00:00Z",
		`{"at":"2026-03-29T02:30","zone":"Europe/Berlin"}`:          "2026-03-29T01:00:00Z",
		`{"at":"2026-10-25T02:30:00","zone":"Europe/Berlin"}`:       "2026-10-25T00:30:00Z",
		`{"at":"2026-10-25T03:00:00","zone":"Europe/Berlin"}`:       "2026-10-25T02:00:00Z",
		`{"at":"2026-04-05T01:45:00","zone":"Australia/Lord_Howe"}`: "2026-04-04T14:45:00Z",
		`{"at":"2011-12-30T12:00:00","zone":"Pacific/Apia"}`:        "2011-12-30T10:00:00Z",
		`{"at":"2026-01-02T03:04:05.25","zone":"Asia/Kolkata"}`:     "2026-01-01T21:34:05.25Z",
		`{"at":"2026-01-02T03:04:05Z"}`:                             "2026-01-02T03:04:05Z",
	} {
		var task core.NewTask
		require.NoError(t, json.Unmarshal([]byte(text), &task), text)
		assert.Equal(t, want, task.At.UTC().Format(time.RFC3339Nano), text)
		assert.Empty(t, task.Zone, text)
	}
	for text, field := range map[string]string{
		`{"at":"2026-12-01T09:00:00"}`:                                           "at",
		`{"at":"2026-12-01T09:00:00","zone":"Mars"}`:                             "zone",
		`{"at":"2026-12-01T09:00:00","zone":"agent"}`:                            "zone",
		`{"at":"2026-12-01T09:00:00","zone":"Europe/Berlin","cron":"* * * * *"}`: "at",
		`{"at":"tomorrow","zone":"Europe/Berlin"}`:                               "at",
	} {
		var task core.NewTask
		invalid, ok := errors.AsType[*core.InvalidError](json.Unmarshal([]byte(text), &task))
		if assert.True(t, ok, text) {
			assert.Equal(t, field, invalid.Field, text)
		}
	}
}
