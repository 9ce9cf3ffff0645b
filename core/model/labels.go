package model

// Labels: their bounds, and the two that had fields before.

import (
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Labels hold what a platform, but not duly, wants to know about a task. Two of them had their own fields before labels
// existed: in JSON and in the store they keep those places, so that older binaries and clients find them.
const (
	LabelMemCube  = "mem_cube_id"
	LabelUserName = "user_name"
)

// Bounds of labels.
const (
	maxLabels    = 32
	maxLabelName = 64 // bytes
)

// CheckLabels refuses names and values that are not valid text, and too many or too long ones.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return check.Invalid("labels", "are %d: the limit is %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		field := "labels." + check.Clip(name)
		if name == LabelMemCube || name == LabelUserName {
			field = name
		}
		if name == "" || len(name) > maxLabelName {
			return check.Invalid(field, "has a name of %d bytes: it must have 1 to %d", len(name), maxLabelName)
		}
		if err := check.ValidText(field, name, maxLabelName); err != nil {
			return err
		}
		if err := check.ValidText(field, labels[name], check.MaxTextLen); err != nil {
			return err
		}
	}
	return nil
}

// otherLabels are those that JSON has under "labels".
func otherLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	others := maps.Clone(labels)
	delete(others, LabelMemCube)
	delete(others, LabelUserName)
	return others
}

// setLabel adds a label to those of a task.
func (t *NewTask) setLabel(name, value string) {
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[name] = value
}
