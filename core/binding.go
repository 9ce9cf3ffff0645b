package core

// Bindings: values of an agent, a user and a task that its handler works with.

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Values are the values that bindings give a run, by name. A name has capital letters, digits and underscores, and begins with a letter, as
// names of variables do; a value is text without control characters.
type Values map[string]string

// Binding returns the values of a run, by its agent, user, kind and task: a workspace, a tenant, a key of a provider. It is called
// before each run, and before its gate. An error, or a panic, is a failed attempt, for which no handler is called;
// an error such as Snooze means the same as from a handler. It must not change the run.
type Binding func(ctx context.Context, t *RunInfo) (Values, error)

// Bounds of the values of one run.
const (
	MaxValues    = 64
	MaxValueName = 64      // bytes
	MaxValue     = 4 << 10 // bytes
)

// Bound returns what the bindings gave this run; nil for nothing. It must not be changed.
func (t *RunInfo) Bound() Values {
	if t == nil || t.extra == nil {
		return nil
	}
	return t.extra.bound
}

// boundKey is the key of a run's values in its context.
type boundKey struct{}

// Bound returns what the bindings gave the run that a context is of; nil for nothing. A handler of batches asks each of its tasks, as
// their users may differ: see [RunInfo.Bound].
func Bound(ctx context.Context) Values {
	v, _ := ctx.Value(boundKey{}).(Values)
	return v
}

// CheckValueName refuses a name that values cannot have. A program gets them as variables and a server as headers, where
// another name could pass for something else.
func CheckValueName(name string) error {
	switch {
	case len(name) > MaxValueName:
		return fmt.Errorf("the name %.40q... is %d bytes long: the limit is %d", name, len(name), MaxValueName)
	case name == "" || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") != "" || name[0] < 'A' || name[0] > 'Z':
		return fmt.Errorf("the name %q must have capital letters, digits and underscores only, and begin with a letter", name)
	default:
		return nil
	}
}

// Check refuses values that cannot be handed on. Its error names a value and never shows it, as it may be a secret.
func (v Values) Check() error {
	if len(v) > MaxValues {
		return fmt.Errorf("%d values: the limit is %d", len(v), MaxValues)
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if err := CheckValueName(name); err != nil {
			return err
		}
		if reason := check.TextReason(v[name], MaxValue); reason != "" {
			return fmt.Errorf("the value of %s %s", name, reason)
		}
	}
	return nil
}

// bind asks the bindings for the values of a run. Of a name that several give, the last value counts.
func (s *Scheduler) bind(ctx context.Context, r *run) error {
	if len(s.config.Bindings) == 0 {
		return nil
	}
	var all Values
	info := r.gateInfo()
	for _, binding := range s.config.Bindings {
		got, err := binding(ctx, info)
		if err != nil {
			return err
		}
		if all == nil {
			all = make(Values, len(got))
		}
		maps.Copy(all, got)
	}
	if err := all.Check(); err != nil {
		return err
	}
	r.give(func(x *extra) { x.bound = all })
	return nil
}
