package model

// Owners: which file, deployment or program has declared a task, so that it can remove later what it no longer declares.

import "github.com/seed-6f6f2c11/duly/core/internal/check"

// LabelOwner is the label that names who declares a task: see [NewTask.OwnedBy]. Lists select by it as by any other label. No submit can set
// it as a label, so that a task that was submitted by hand is never taken for one that was declared.
const LabelOwner = "duly-owner"

// OwnedBy sets who declares the task, such as a deployment; "" for no owner. It replaces the labels of the task by a copy. duly apply calls it
// for the tasks of a file; a program that declares tasks by itself can, too.
func (t *NewTask) OwnedBy(owner string) {
	labels := make(map[string]string, len(t.Labels)+1)
	for name, value := range t.Labels {
		if name != LabelOwner {
			labels[name] = value
		}
	}
	if t.owned = owner != ""; t.owned {
		labels[LabelOwner] = owner
	}
	t.Labels = labels
}

// Owner is who declares the task; "" for no owner.
func (info *TaskInfo) Owner() string { return info.Labels[LabelOwner] }

// CheckOwner refuses what cannot be the name of an owner, with an *[store.InvalidError].
func CheckOwner(owner string) error {
	if owner == "" {
		return check.Invalid("owner", "must not be empty")
	}
	return check.ValidText("owner", owner, check.MaxIDLen)
}

// checkOwned checks the labels of a task. The label of its owner is set in addition to the submitter's, and never by the submitter.
func (t *NewTask) checkOwned() error {
	owner, has := t.Labels[LabelOwner]
	switch {
	case !has:
		return check.ValidLabels(t.Labels)
	case !t.owned:
		return check.Invalid("labels."+LabelOwner, "is set by duly apply alone: leave it out")
	case len(t.Labels) > check.MaxLabels+1:
		return check.Invalid("labels", "are %d: the limit is %d", len(t.Labels)-1, check.MaxLabels)
	}
	others := NewTask{Labels: t.Labels}
	others.OwnedBy("")
	if err := check.ValidLabels(others.Labels); err != nil {
		return err
	}
	return CheckOwner(owner)
}

// KeepOwner lets a task that was read as JSON have the owner that it has in the store, and no other.
func (t *NewTask) KeepOwner(owner string) error {
	if given, has := t.Labels[LabelOwner]; has && given != owner {
		return check.Invalid("labels."+LabelOwner, "is set by duly apply alone: leave it out")
	}
	if owner != "" {
		t.OwnedBy(owner)
	}
	return nil
}

// OwnedAsLabelled accepts the owner in the labels as the task's owner, as an import does for a task that was exported with one.
func (t *NewTask) OwnedAsLabelled() { t.owned = t.Labels[LabelOwner] != "" }
