package dulyfile

// Bounds that core knows, as errors at the keys of the file.

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// keys are the keys of the file for fields of core.Config, and of the core.KindConfig of a handler: those in a mapping behind
// its key and a dot.
// A field that is missing here is reported under its Go name, and a test finds it.
var keys = map[string]string{
	"Concurrency": "concurrency", "Serial": "serial", "Urgent": "urgent_slots", "Ahead": "ahead", "MaxCrashes": "max_crashes", "MaxDepth": "max_depth", "MaxSpawned": "max_spawned", "Zone": "zone", "Default.Lease": "lease",

	"Level": "level", "Slots": "slots", "Lease": "lease", "MaxAttempts": "max_attempts", "MaxBackoff": "max_backoff",
	"Batch": "batch", "BatchWait": "batch_wait", "BatchBy": "batch_by", "Expect": "expect",
	"Tool.Name": "tool.name", "Tool.Description": "tool.description", "Tool.Input": "tool.input",
	"IdleBackoff.Factor": "idle_factor", "IdleBackoff.Max": "idle_max",

	"Activity.Quiet": "activity.quiet", "Activity.Delay": "activity.delay", "Activity.Mode": "activity.mode",
	"Activity.MaxWait": "activity.max_wait", "Activity.MinInterval": "activity.min_interval",
	"Activity.Dimensions": "activity.dimensions", "Activity.Level": "activity.level",
}

// misconfigured is what core says about settings, so that their bounds are written in one place; nil if they make sense.
// core's own check, on a store that is thrown away: no bound is written twice.
func misconfigured(settings core.Config) (*core.ConfigError, error) {
	_, err := core.New(memstore.New(memstore.Config{Partitions: 1}), settings)
	if wrong, ok := errors.AsType[*core.ConfigError](err); ok {
		return wrong, nil
	}
	return nil, err
}

// check refuses settings that make no sense, at the key that set them. They are those of the whole file, or of one kind.
// The key is looked for in the file, part by part, so that the error has its line.
func check(p place, kind string, settings core.Config) error {
	wrong, err := misconfigured(settings)
	if wrong == nil {
		return err
	}
	path := keys[strings.TrimPrefix(wrong.Field, fmt.Sprintf("Kinds[%q].", kind))]
	for path != "" {
		key, rest, _ := strings.Cut(path, ".")
		at := p.of(key)
		if at == p { // the value is a default, or follows from others
			return p.fail("%s %s", path, wrong.Reason)
		}
		p, path = at, rest
	}
	return p.fail("%s", wrong.Reason)
}

// Check finds out whether the settings make sense together, also those that flags have changed since the file was read. Its error
// is an *[Error].
// A flag may be what makes no sense, so that it has no line.
func (f *File) Check() error {
	wrong, err := misconfigured(f.Settings())
	if wrong == nil {
		return err
	}
	return &Error{Path: cmp.Or(keys[wrong.Field], wrong.Field), Err: errors.New(wrong.Reason)}
}
