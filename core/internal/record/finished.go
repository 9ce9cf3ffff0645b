package record

// The finished record: what is kept of a task, for as long as its agent's history has room.

import (
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Finished is what is kept of a task that has ended.
// It is kept for the retention, so its size matters: completed tasks keep no body.
type Finished struct {
	Kind      string
	Level     store.Level
	Submitted moment.Millis
	Due       moment.Millis
	Reason    string // why it failed or was cancelled, if not by its handler's error
	Group     string
	Body      []byte // kept when it failed, so that it can be replayed
	State     []byte
	Origin    *Origin // of a task whose body is not kept, if a run has submitted it
	Callback  string  // the id of the task that delivers the callback of this one; empty for none
}

// Level and due time are rows with their own form, as the usual values are left out.
var finished = tableOf(rows{
	{number: 1, form: formText, at: unsafe.Offsetof(Finished{}.Kind)},
	{
		number: 2, form: formOwn, at: unsafe.Offsetof(Finished{}.Level),
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if level := *(*store.Level)(at); level != store.LevelLow { // the usual one, which a reader assumes
				w.int(n, int64(level))
			}
		},
		read: func(at unsafe.Pointer, v int64, _ []byte) { *(*store.Level)(at) = store.Level(v) },
	},
	{number: 3, form: formCount, at: unsafe.Offsetof(Finished{}.Submitted)},
	{ // it is stored relative to the submit, which is short; also while it is read
		number: 4, form: formOwn,
		write: func(w *wire, n uint64, at unsafe.Pointer) { f := (*Finished)(at); w.int(n, int64(f.Due-f.Submitted)) },
		read:  func(at unsafe.Pointer, v int64, _ []byte) { (*Finished)(at).Due = moment.Millis(v) },
	},
	{number: 5, form: formText, at: unsafe.Offsetof(Finished{}.Reason)},
	{number: 6, form: formText, at: unsafe.Offsetof(Finished{}.Group)},
	{number: 7, form: formRaw, at: unsafe.Offsetof(Finished{}.Body)},
	{number: 8, form: formRaw, at: unsafe.Offsetof(Finished{}.State)},
	origin(9, unsafe.Offsetof(Finished{}.Origin)),
	{number: 10, form: formText, at: unsafe.Offsetof(Finished{}.Callback)},
})

// Encode is the record as it is stored.
func (f *Finished) Encode() []byte {
	return finished.encode(unsafe.Pointer(f), 64+len(f.Body)+len(f.State))
}

// DecodeFinished reads a record, which aliases data. With an error it has what was read before.
// A missing level is LevelLow, which is never written.
func DecodeFinished(data []byte) (Finished, error) {
	f := Finished{Level: store.LevelLow}
	err := finished.decode(data, unsafe.Pointer(&f))
	f.Due += f.Submitted
	return f, err
}
