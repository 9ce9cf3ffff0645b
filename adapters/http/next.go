package http

import (
	"cmp"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Calls about no task: when a schedule would be due, and which presets exist. No store is called.

// presets are those of this version, for NewTask's preset.
func (*api) presets(*http.Request, operation.Empty) (operation.Presets, error) {
	return operation.Presets{Presets: model.Presets()}, nil
}

// timesByDefault is how many times a forecast has if the request gives no number.
const timesByDefault = 5

// next answers when a schedule is due next. It is a POST as an expression is full of characters that a query has to escape.
func (a *api) next(_ *http.Request, p inspect.Preview) (inspect.Forecast, error) {
	p.Count = cmp.Or(p.Count, timesByDefault)
	return a.scheduler.Forecast(p)
}
