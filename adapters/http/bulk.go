package http

// Commands for the tasks of a list.

import (
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// bulk is the call of a command: one step, for an agent that the caller may change, or for all agents if it may change these.
func (a *api) bulk(verb operate.BulkVerb) func(r *http.Request) (int, any, error) {
	return func(r *http.Request) (int, any, error) { return a.bulkStep(r, verb) }
}

// bulkStep carries it out.
func (a *api) bulkStep(r *http.Request, verb operate.BulkVerb) (int, any, error) {
	data, err := optionalBody(r)
	if err != nil {
		return 0, nil, err
	}
	b := operate.Bulk{Do: verb}
	var since, until string
	l := &b.List
	if err := decode(data,
		strictjson.Field{Name: "agent_id", Into: &l.Agent, Must: mustBeString},
		strictjson.Field{Name: "status", Into: &l.Status, Must: "must be an array of statuses"},
		strictjson.Field{Name: "kind", Into: &l.Kind, Must: mustBeString},
		strictjson.Field{Name: "key", Into: &l.Key, Must: mustBeString},
		strictjson.Field{Name: "group", Into: &l.Group, Must: mustBeString},
		strictjson.Field{Name: "labels", Into: &l.Labels, Must: "must be an object of strings"},
		strictjson.Field{Name: "since", Into: &since, Must: mustBeString},
		strictjson.Field{Name: "until", Into: &until, Must: mustBeString},
		strictjson.Field{Name: "overdue", Into: &l.Overdue, Must: mustBeBool},
		strictjson.Field{Name: "limit", Into: &l.Limit, Must: "must be a whole number from 1 on"},
		strictjson.Field{Name: "cursor", Into: &l.Cursor, Must: mustBeString},
		strictjson.Field{Name: "all", Into: &b.All, Must: mustBeBool},
		strictjson.Field{Name: "dry_run", Into: &b.DryRun, Must: mustBeBool},
		strictjson.Field{Name: "confirm", Into: &b.Confirm, Must: mustBeBool},
		strictjson.Field{Name: "count", Into: &b.Count, Must: "must be a whole number from 1 on"},
		strictjson.Field{Name: "reason", Into: &b.Reason, Must: mustBeString, Zero: true},
		strictjson.Field{Name: "by", Into: &b.By, Must: mustBeString, Zero: true},
	); err != nil {
		return 0, nil, err
	}
	if err := a.allow(r, l.Agent); err != nil {
		return 0, nil, err
	}
	if err := a.ended(r.Context(), l, since, until); err != nil {
		return 0, nil, err
	}
	step, err := a.scheduler.Bulk(r.Context(), b)
	return http.StatusOK, step, err
}
