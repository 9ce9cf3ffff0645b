package record

// The origin: by which run a task was submitted. It is a nested record within bodies and finished records.

import "unsafe"

// Origin is what is stored of the run that has submitted a task. Tasks that no run has submitted have none.
type Origin struct {
	Agent, ID         string // of the task whose run it was
	RootAgent, RootID string // of the first ancestor, which no run has submitted
	Depth             int    // below that: 1 for what its own runs submit
}

var origins = tableOf(rows{
	{number: 1, form: formText, at: unsafe.Offsetof(Origin{}.Agent)},
	{number: 2, form: formText, at: unsafe.Offsetof(Origin{}.ID)},
	{number: 3, form: formText, at: unsafe.Offsetof(Origin{}.RootAgent)},
	{number: 4, form: formText, at: unsafe.Offsetof(Origin{}.RootID)},
	{number: 5, form: formInt, at: unsafe.Offsetof(Origin{}.Depth)},
})

// origin is the row of an origin. One that cannot be read is kept as far as it could be: it must not hide the task.
func origin(n uint64, at uintptr) field {
	return field{
		number: n, form: formOwn, at: at,
		write: func(w *wire, n uint64, at unsafe.Pointer) {
			if o := *(**Origin)(at); o != nil {
				w.bytes(n, origins.encode(unsafe.Pointer(o), 16+len(o.Agent)+len(o.ID)+len(o.RootAgent)+len(o.RootID)))
			}
		},
		read: func(at unsafe.Pointer, _ int64, b []byte) {
			o := &Origin{}
			_ = origins.decode(b, unsafe.Pointer(o))
			*(**Origin)(at) = o
		},
	}
}
