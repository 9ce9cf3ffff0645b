package model

// Labels hold what a platform, but not duly, wants to know about a task.

import (
	"maps"
	"slices"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Bounds of labels.
const (
	maxLabels    = 32
	maxLabelName = 64 // bytes

	maxEventLabels = 1 << 10 // bytes of all labels in an event, names and values
)

// CheckLabels refuses names and values that are not valid text, and too many or too long ones.
func CheckLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return check.Invalid("labels", "are %d: the limit is %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		field := "labels." + check.Clip(name)
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

// labelsOfEvent are the labels that an event has: none if they are long, as a feed keeps many events.
func labelsOfEvent(labels map[string]string) map[string]string {
	n := 0
	for name, value := range labels {
		n += len(name) + len(value)
	}
	if n > maxEventLabels {
		return nil
	}
	return labels
}

// setLabel adds a label to those of a task.
func (t *NewTask) setLabel(name, value string) {
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[name] = value
}
