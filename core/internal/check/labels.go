package check

// Labels: what is refused of them.

import (
	"maps"
	"slices"
)

// Bounds of labels.
const (
	MaxLabels    = 32
	MaxLabelName = 64 // bytes
)

// ValidLabels refuses names and values that are not valid text, and too many or too long ones.
func ValidLabels(labels map[string]string) error {
	if len(labels) > MaxLabels {
		return Invalid("labels", "are %d: the limit is %d", len(labels), MaxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		field := "labels." + Clip(name)
		if name == "" || len(name) > MaxLabelName {
			return Invalid(field, "has a name of %d bytes: it must have 1 to %d", len(name), MaxLabelName)
		}
		if err := ValidText(field, name, MaxLabelName); err != nil {
			return err
		}
		if err := ValidText(field, labels[name], MaxTextLen); err != nil {
			return err
		}
	}
	return nil
}
