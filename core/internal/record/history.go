package record

// The history: the last runs of a task, which stay encoded until a caller reads them.

import (
	"encoding/binary"
	"unsafe"
)

// History is the last runs of a task, oldest first. A run that ends adds one to twenty that are not needed then, so these are never
// decoded for that: they are copied as bytes, and the oldest is skipped by its length. The zero History has no runs.
type History struct {
	stored []byte // entries of the state, each with its tag and length
	n      int    // of stored
	by     []byte // the process of the last of stored; empty if it is not known
	added  []Run  // since then
	bad    error  // of a run that could not be read: it does not hide the rest of the state
}

// nobody is stored for a run of an unknown process after one of a known process.
// A process that repeats is not stored again: nearly all runs of a task have the same one.
const nobody = "?"

// processField is the number of Run.Process, which alone depends on the run before.
const processField = 6

// take adds an entry as it is read: b is the run, whole the entry, which aliases the data that is read.
func (h *History) take(b, whole []byte) {
	if len(b) == 0 { // never written
		return
	}
	process, err := processOf(b, h.by)
	if err != nil {
		h.bad = err
	}
	h.n, h.by = h.n+1, process
	end := len(h.stored)
	// Entries are next to each other in everything that this package writes: then they need not be copied.
	if next := end + len(whole); end == 0 {
		h.stored = whole
	} else if next <= cap(h.stored) && &h.stored[:next][end] == &whole[0] {
		h.stored = h.stored[:next]
	} else {
		h.stored = append(h.stored[:end:end], whole...)
	}
}

// processOf is the process of a run, given the process of the run before.
func processOf(run, before []byte) ([]byte, error) {
	err := readWire(run, func(number uint64, _ int64, b, _ []byte) {
		if number == processField {
			before = b
		}
	})
	if string(before) == nobody {
		before = nil
	}
	return before, err
}

// Add appends a run. The oldest are left out when the history is written and there are more than are kept.
func (h *History) Add(r Run) { h.added = append(h.added, r) }

// Pop takes the last run out; false if there is none.
func (h *History) Pop() (Run, bool) {
	all := h.All()
	if len(all) == 0 {
		return Run{}, false
	}
	last := len(all) - 1
	*h = History{added: all[:last:last]}
	return all[last], true
}

// Len is the number of runs.
func (h *History) Len() int {
	n := h.n + len(h.added)
	if len(h.added) > 0 {
		return min(n, KeptRuns)
	}
	return n // as many as were stored, even by a binary that keeps more
}

// All are the runs, decoded.
func (h *History) All() []Run {
	if h.Len() == 0 {
		return nil
	}
	all := make([]Run, 0, h.n+len(h.added))
	process := ""
	// Each entry was read before, so that it has no error that is not known already.
	_ = readWire(h.stored, func(_ uint64, _ int64, b, _ []byte) {
		r := Run{Outcome: outcomes[0], Process: process}
		_ = runs.decode(b, unsafe.Pointer(&r))
		if r.Process == nobody {
			r.Process = ""
		}
		process = r.Process
		all = append(all, r)
	})
	all = append(all, h.added...)
	return all[len(all)-h.Len():]
}

// write writes the entries: the stored ones unchanged, and then those that were added.
func (h *History) write(w *wire, n uint64) {
	added, before := h.added, string(h.by)
	if over := h.n + len(added) - h.Len(); over >= h.n && over > 0 {
		added, before = added[over-h.n:], ""
	} else {
		h.copy(w, n, over)
	}
	for i := range added {
		process := added[i].Process
		switch process {
		case before:
			process = ""
		case "":
			process = nobody
		}
		before = added[i].Process
		w.nested(n, func() {
			others := runs.rows[:len(runs.rows)-1]
			for k := range others {
				others[k].put(w, unsafe.Add(unsafe.Pointer(&added[i]), others[k].at))
			}
			w.str(processField, process) // it is the last field of a run
		})
	}
}

// copy writes the stored entries without the oldest. The first that is left has to name its process, as no run is before it.
func (h *History) copy(w *wire, n uint64, without int) {
	if without == 0 {
		*w = append(*w, h.stored...)
		return
	}
	left := h.stored
	var process, b []byte
	for range without {
		b, left = entry(left)
		process, _ = processOf(b, process)
	}
	b, left = entry(left)
	process, _ = processOf(b, process)
	w.nested(n, func() {
		_ = readWire(b, func(number uint64, _ int64, _, whole []byte) {
			if number != processField {
				*w = append(*w, whole...)
			}
		})
		w.bytes(processField, process)
	})
	*w = append(*w, left...)
}

// entry is the first entry of some, without its tag and length, and the rest.
func entry(data []byte) (first, rest []byte) {
	_, tag := binary.Uvarint(data)
	size, n := binary.Uvarint(data[tag:])
	from := tag + n
	return data[from : from+int(size)], data[from+int(size):] //nolint:gosec // it was read before, so it fits
}
