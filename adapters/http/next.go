package http

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Calls about no task: when a schedule would be due, and which presets exist. No store is called.

// presets are those of this version, for NewTask's preset.
func (*api) presets(r *http.Request) (int, any, error) {
	_, err := query(r)
	return http.StatusOK, struct {
		Presets []model.Preset `json:"presets"`
	}{model.Presets()}, err
}

// timesByDefault is how many times a forecast has if the request gives no number.
const timesByDefault = 5

// next answers when a schedule is due next. It is a POST as an expression is full of characters that a query has to escape.
func (a *api) next(r *http.Request) (int, any, error) {
	data, err := requestbody.JSON(r)
	if err != nil {
		return 0, nil, err
	}
	p := inspect.Preview{Count: timesByDefault}
	const time = `must be a time such as "2026-01-02T15:04:05Z"`
	if err := decode(data,
		strictjson.Field{Name: "cron", Into: &p.Cron, Must: mustBeString},
		strictjson.Field{Name: "zone", Into: &p.Zone, Must: mustBeString},
		strictjson.Field{Name: "day_match", Into: &p.DayMatch, Must: mustBeString},
		strictjson.Field{Name: "gap", Into: &p.Gap, Must: mustBeString},
		strictjson.Field{Name: "every", Into: (*strictjson.Duration)(&p.Every), Must: `must be a duration such as "90s" or "1h30m"`},
		strictjson.Field{Name: "at", Into: &p.At, Must: time},
		strictjson.Field{Name: "from", Into: &p.After, Must: time},
		strictjson.Field{Name: "count", Into: &p.Count, Must: "must be a whole number from 1 to 1000"},
	); err != nil {
		return 0, nil, err
	}
	f, err := a.scheduler.Forecast(p)
	return http.StatusOK, f, err
}
