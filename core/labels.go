package core

// Labels: their bounds, and the two that had fields before.

import (
	"maps"
	"slices"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/record"
)

// Labels are what a platform wants to know of a task and duly does not. Two of them had fields of their own before there were
// labels: in JSON and in what is stored they are where they were, so that older binaries and clients find them.
const (
	labelMemCube  = "mem_cube_id"
	labelUserName = "user_name"
)

// Bounds of labels.
const (
	maxLabels    = 32
	maxLabelName = 64 // bytes
)

// checkLabels refuses names and values that are no texts, or too many or too long ones.
func checkLabels(labels map[string]string) error {
	if len(labels) > maxLabels {
		return invalid("labels", "are %d: the limit is %d", len(labels), maxLabels)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		field := "labels." + clip(name)
		if name == labelMemCube || name == labelUserName {
			field = name
		}
		if name == "" || len(name) > maxLabelName {
			return invalid(field, "has a name of %d bytes: it must have 1 to %d", len(name), maxLabelName)
		}
		if err := validText(field, name, maxLabelName); err != nil {
			return err
		}
		if err := validText(field, labels[name], MaxTextLen); err != nil {
			return err
		}
	}
	return nil
}

// storeLabels puts labels into a body, in an order that does not depend on how they were given.
func storeLabels(b *record.Body, labels map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		switch value := labels[name]; name {
		case labelMemCube:
			b.MemCubeID = value
		case labelUserName:
			b.UserName = value
		default:
			b.Labels = append(b.Labels, name+"\x00"+value)
		}
	}
}

// labels are those of a stored task; nil if it has none.
func (b *body) labels() map[string]string {
	if b.MemCubeID == "" && b.UserName == "" && len(b.Labels) == 0 {
		return nil
	}
	labels := make(map[string]string, len(b.Labels)+2)
	for _, l := range b.Labels {
		name, value, _ := strings.Cut(l, "\x00")
		labels[name] = value
	}
	if b.MemCubeID != "" {
		labels[labelMemCube] = b.MemCubeID
	}
	if b.UserName != "" {
		labels[labelUserName] = b.UserName
	}
	return labels
}

// otherLabels are those that JSON has under "labels".
func otherLabels(labels map[string]string) map[string]string {
	if len(labels) == 0 {
		return nil
	}
	others := maps.Clone(labels)
	delete(others, labelMemCube)
	delete(others, labelUserName)
	return others
}

// setLabel adds a label to those of a task.
func (t *NewTask) setLabel(name, value string) {
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[name] = value
}
