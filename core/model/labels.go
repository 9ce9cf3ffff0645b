package model

// Labels hold what a platform, but not duly, wants to know about a task.

// maxEventLabels bounds all labels in an event, in bytes of names and values.
const maxEventLabels = 1 << 10

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
