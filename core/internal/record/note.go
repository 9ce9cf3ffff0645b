package record

// Notes: small records that a store keeps beside tasks, and never reads.

import (
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Hold is who paused or cancelled something, and why.
// A store keeps it with a hold or an order, and core alone reads it.
type Hold struct {
	By, Reason string
	Note       string // what the caller says of itself

	// Of a cancelled task, as it was when it was cancelled: it may have been replaced since its run began.
	Group, Kind string
	Level       store.Level
	// Callback is the URL that is notified of its end, or NoCallback for none: empty if a version without this row has written it.
	Callback string
}

// NoCallback is the Callback of a task without a callback.
const NoCallback = "-"

var holds = tableOf(rows{
	{number: 1, form: formText, at: unsafe.Offsetof(Hold{}.By)},
	{number: 2, form: formText, at: unsafe.Offsetof(Hold{}.Reason)},
	{number: 3, form: formText, at: unsafe.Offsetof(Hold{}.Group)},
	{number: 4, form: formText, at: unsafe.Offsetof(Hold{}.Kind)},
	{number: 5, form: formInt, at: unsafe.Offsetof(Hold{}.Level)},
	{number: 6, form: formText, at: unsafe.Offsetof(Hold{}.Callback)},
	{number: 7, form: formText, at: unsafe.Offsetof(Hold{}.Note)},
})

// Encode is the hold as it is stored.
func (h *Hold) Encode() []byte { return holds.encode(unsafe.Pointer(h), 8+len(h.By)+len(h.Reason)) }

// DecodeHold reads a hold. If it cannot be read, its Reason says so: the caller has to see that something is held.
func DecodeHold(data []byte) Hold {
	var h Hold
	if err := holds.decode(data, unsafe.Pointer(&h)); err != nil {
		h.Reason = err.Error()
	}
	return h
}

// Failure is a failed run as the statistics of its kind show it.
// It is kept as long as it is among the last failures of its kind, also when its task is gone.
type Failure struct{ Agent, ID, Error string }

var failures = tableOf(rows{
	{number: 1, form: formText, at: unsafe.Offsetof(Failure{}.Agent)},
	{number: 2, form: formText, at: unsafe.Offsetof(Failure{}.ID)},
	{number: 3, form: formText, at: unsafe.Offsetof(Failure{}.Error)},
})

// Encode is the failure as it is stored.
func (f *Failure) Encode() []byte {
	return failures.encode(unsafe.Pointer(f), 8+len(f.Agent)+len(f.ID)+len(f.Error))
}

// DecodeFailure reads a failure. If it cannot be read, its Error says so.
func DecodeFailure(data []byte) Failure {
	var f Failure
	if err := failures.decode(data, unsafe.Pointer(&f)); err != nil {
		f.Error = err.Error()
	}
	return f
}

// Sender is who has sent a signal, and how.
// A store keeps it with the signal, and core alone reads it.
type Sender struct{ How, By, Question string }

var senders = tableOf(rows{
	{number: 1, form: formText, at: unsafe.Offsetof(Sender{}.How)},
	{number: 2, form: formText, at: unsafe.Offsetof(Sender{}.By)},
	{number: 3, form: formText, at: unsafe.Offsetof(Sender{}.Question)},
})

// Encode is the sender as it is stored.
func (s *Sender) Encode() []byte {
	return senders.encode(unsafe.Pointer(s), 8+len(s.By)+len(s.Question))
}

// DecodeSender reads a sender. One that cannot be read is empty, so that no signal is attributed to the wrong sender.
func DecodeSender(data []byte) Sender {
	var s Sender
	if senders.decode(data, unsafe.Pointer(&s)) != nil {
		return Sender{}
	}
	return s
}
