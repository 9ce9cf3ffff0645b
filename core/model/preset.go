package model

// Presets: tasks that agent platforms need, as data.

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Preset is a task that agent platforms need, as data: NewTask.Preset names it, and fields that the task leaves out are
// taken from it.
type Preset struct {
	Name   string
	Kind   string
	Cron   string
	Jitter time.Duration
	Level  store.Level
	MinAge time.Duration // minimum age of what it works on: the payload's min_age, if the task has no payload
}

// MarshalJSON writes what the preset has, its durations as a task has them.
func (p *Preset) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Name   string      `json:"name"`
		Kind   string      `json:"kind"`
		Cron   string      `json:"cron,omitempty"`
		Jitter wire.Span   `json:"jitter,omitzero"`
		Level  store.Level `json:"level,omitempty"`
		MinAge wire.Span   `json:"min_age,omitzero"`
	}{p.Name, p.Kind, p.Cron, wire.Span(p.Jitter), p.Level, wire.Span(p.MinAge)})
}

// presets are all presets: the maintenance of an agent's memory, then the labels of a memory's messages.
var presets = []Preset{
	{Name: "memory.rollup_day", Kind: "memory.rollup_day", Cron: "0 0 1 * * *", Jitter: 5 * time.Minute, MinAge: time.Hour},
	{Name: "memory.rollup_week", Kind: "memory.rollup_week", Cron: "0 0 2 * * 0", Jitter: 5 * time.Minute, MinAge: 24 * time.Hour},
	{Name: "memory.rollup_month", Kind: "memory.rollup_month", Cron: "0 0 3 1 * *", Jitter: 5 * time.Minute, MinAge: 24 * time.Hour},
	{Name: "memory.compaction", Kind: "memory.compaction", Cron: "0 0 4 * * 0", Jitter: 10 * time.Minute},
	{Name: "memory.index_commit", Kind: "memory.index_commit", Cron: "0 */5 * * * *", Jitter: time.Minute},
	{Name: "query", Kind: "query", Level: store.LevelHigh},
	{Name: "answer", Kind: "answer", Level: store.LevelHigh},
	{Name: "add", Kind: "add", Level: store.LevelHigh},
	{Name: "mem_update", Kind: "mem_update", Level: store.LevelLow},
	{Name: "mem_read", Kind: "mem_read", Level: store.LevelLow},
	{Name: "mem_organize", Kind: "mem_organize", Level: store.LevelLow},
	{Name: "mem_archive", Kind: "mem_archive", Level: store.LevelLow},
	{Name: "pref_add", Kind: "pref_add", Level: store.LevelLow},
	{Name: "mem_feedback", Kind: "mem_feedback", Level: store.LevelLow},
	{Name: "api_mix_search", Kind: "api_mix_search", Level: store.LevelLow},
}

// Presets are all presets, in a fixed order.
func Presets() []Preset { return slices.Clone(presets) }

// Fill takes what a task leaves out from its preset. A task's own cron expression keeps the rest of the preset; any other
// schedule replaces the preset's, and its jitter with it.
func (t *NewTask) Fill() error {
	if k, ok := t.Payload.(kinder); ok && t.Kind == "" && t.Preset == "" {
		t.Kind = k.Kind()
	}
	if t.Preset == "" {
		return nil
	}
	i := slices.IndexFunc(presets, func(p Preset) bool { return p.Name == t.Preset })
	if i < 0 {
		return check.Invalid("preset", "%q is unknown", check.Clip(t.Preset))
	}
	p := &presets[i]
	t.Kind = cmp.Or(t.Kind, p.Kind)
	t.Level = cmp.Or(t.Level, p.Level)
	if t.Every == 0 && t.At.IsZero() && t.Delay == 0 && !t.Manual {
		t.Cron = cmp.Or(t.Cron, p.Cron)
	}
	if t.Cron != "" {
		t.Jitter = cmp.Or(t.Jitter, p.Jitter)
	}
	if p.MinAge != 0 && t.Payload == nil {
		payload, err := json.Marshal(map[string]string{"min_age": p.MinAge.String()})
		if err != nil {
			return err
		}
		t.Payload = json.RawMessage(payload)
	}
	return nil
}
