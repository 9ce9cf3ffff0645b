package http_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// When a schedule is due is worked out without a store, and for everybody who may read.
func TestNext(t *testing.T) {
	t.Parallel()
	f := setupWith(t, core.Config{Zone: "Europe/Berlin"}, httpadapter.Config{})
	for body, want := range map[string]string{
		`{"cron":"30 2 * * *","from":"2026-03-28T00:00:00Z","count":2}`: `{"times":["2026-03-28T02:30:00+01:00","2026-03-29T03:00:00+02:00"],
			"changes":[{"before":"2026-03-29T03:00:00+02:00","shift":"1h0m0s"}]}`,
		`{"cron":"30 2 * * *","zone":"Europe/Berlin","gap":"skip","from":"2026-10-24T12:00:00Z","count":1}`: `{"times":["2026-10-25T02:30:00+02:00"]}`,
		`{"cron":"0 9 * * *","from":"2026-10-24T12:00:00Z","count":1}`: `{"times":["2026-10-25T09:00:00+01:00"],
			"changes":[{"before":"2026-10-25T09:00:00+01:00","shift":"-1h0m0s"}]}`,
		`{"every":"1d","from":"2026-01-01T01:00:00+01:00","count":2}`:   `{"times":["2026-01-02T00:00:00Z","2026-01-03T00:00:00Z"]}`,
		`{"at":"2026-01-01T00:00:00Z","from":"2025-01-01T00:00:00Z"}`:   `{"times":["2026-01-01T00:00:00Z"]}`,
		`{"at":"2026-01-01T00:00:00Z","from":"2026-01-01T00:00:00Z"}`:   `{"times":[]}`,
		`{"cron":"@daily","zone":"UTC","from":"9999-12-31T00:00:00Z"}`:  `{"times":[]}`,
		`{"every":"1w","from":"9999-12-31T00:00:00Z"}`:                  `{"times":[]}`,
		`{"cron":"@yearly","zone":"UTC","from":"9998-06-01T00:00:00Z"}`: `{"times":["9999-01-01T00:00:00Z"]}`,
	} {
		res, answer := f.call(t, "POST", "/v1/next", body)
		assert.Equal(t, 200, res.StatusCode, "%s: %s", body, answer)
		assert.JSONEq(t, want, answer, body)
	}
	for body, field := range map[string]string{
		`{}`:                                                   "cron",
		`{"cron":"61 * * * *"}`:                                "cron",
		`{"cron":"0 0 30 2 *"}`:                                "cron",
		`{"cron":"@daily","every":"1h"}`:                       "cron",
		`{"every":"1ms"}`:                                      "every",
		`{"every":"soon"}`:                                     "every",
		`{"every":"1h","zone":"UTC"}`:                          "zone",
		`{"cron":"@daily","zone":"Mars"}`:                      "zone",
		`{"cron":"@daily","zone":"agent"}`:                     "zone",
		`{"cron":"@daily","gap":"jump"}`:                       "gap",
		`{"cron":"@daily","day_match":"some"}`:                 "day_match",
		`{"cron":"@daily","count":1001}`:                       "count",
		`{"cron":"@daily","count":0}`:                          "count",
		`{"cron":"@daily","count":-1}`:                         "count",
		`{"cron":"@daily","n":3}`:                              "n",
		`{"cron":"@daily","from":"0000-01-01T00:00:00+01:00"}`: "from",
		`{"every":"1h","from":"9999-12-31T23:59:59-23:00"}`:    "from",
		`{"at":"9999-12-31T00:00:00Z"}`:                        "at",
		`{"cron":"@daily","from":"2026-01-01"}`:                "from",
		`{"cron":"","count":"5"}`:                              "cron",
	} {
		res, answer := f.call(t, "POST", "/v1/next", body)
		code, at, _ := problem(t, res, answer)
		assert.Equal(t, []any{400, "invalid", field}, []any{res.StatusCode, code, at}, "%s: %s", body, answer)
	}
	assert.Zero(t, f.store.calls.Load(), "no store is asked")
}

// The most that one request can ask for is worked out in no time.
func TestTheLongestForecast(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	begin := time.Now()
	res, _ := f.call(t, "POST", "/v1/next", `{"cron":"0 0 0 29 2 1","day_match":"all","zone":"America/New_York","count":1000}`)
	assert.Equal(t, 200, res.StatusCode)
	t.Logf("took %s", time.Since(begin))
	assert.Less(t, time.Since(begin), 3*time.Second)
}

// Presets are those that a submit takes.
func TestPresets(t *testing.T) {
	t.Parallel()
	f := setup(t, httpadapter.Config{})
	res, answer := f.call(t, "GET", "/v1/presets", "")
	assert.Equal(t, 200, res.StatusCode)
	all := get[map[string][]map[string]any](t, answer)["presets"]
	assert.Len(t, all, len(model.Presets()))
	assert.Equal(t, map[string]any{
		"name": "memory.rollup_day", "kind": "memory.rollup_day", "cron": "0 0 1 * * *", "jitter": "5m0s", "min_age": "1h0m0s",
	}, all[0])
	res, answer = f.call(t, "GET", "/v1/presets?name=x", "")
	_, field, _ := problem(t, res, answer)
	assert.Equal(t, "name", field)
	assert.Zero(t, f.store.calls.Load())
}
