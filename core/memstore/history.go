package memstore

// Finished tasks: how many are kept, for how long, and what stays known of a dropped one.

import (
	"sort"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// history are the finished tasks of an agent.
// It has the structure of the records in Redis, so that both drop the same ones.
type history struct {
	// A history that has had a single record is kept whole, in the entry of its agent.
	many    bool // it has had more than one
	records map[string]finished
	failed  ends
	others  ends // completed or cancelled
}

// finished is what is kept of a finished task: how it ended, when, and what core wrote
// about it. data is nil for one in gone.
type finished struct {
	verb store.Verb
	at   moment.Millis
	data []byte
}

// ends are the records of a history that count together, by when they ended and then by id. Those whose record is gone
// stay in line until they are first.
type ends struct {
	line []end
	n    int // that still have their record
	// kib is the weight of these records: see weight.
	kib int // the weight of those
}

// end is an entry in line, which outlives its record.
type end struct {
	at moment.Millis
	id string
}

// newHistory makes an empty history.
func newHistory() *history { return &history{records: map[string]finished{}} }

// of are the ends that a record counts among.
func (h *history) of(f finished) *ends {
	if f.verb == store.VerbFail {
		return &h.failed
	}
	return &h.others
}

// add puts a record in its place by its end. Any earlier record of the same id is removed.
func (h *history) add(id string, f finished) {
	h.remove(id)
	h.records[id] = f
	e := h.of(f)
	at := sort.Search(len(e.line), func(i int) bool {
		return e.line[i].at > f.at || e.line[i].at == f.at && e.line[i].id >= id
	})
	e.line = append(e.line, end{})
	copy(e.line[at+1:], e.line[at:])
	e.line[at] = end{f.at, id}
	e.n++
	e.kib += weight(len(f.data))
	if len(e.line) > 2*e.n+64 {
		// Many were deleted: the line must not grow for ever. Tidying at twice the number
		// makes its cost small for each record.
		h.tidy(e)
	}
}

// remove drops a record, if there is one.
// Its entry in line stays until it is first, or the line is tidied.
func (h *history) remove(id string) {
	if f, ok := h.records[id]; ok {
		h.of(f).n--
		h.of(f).kib -= weight(len(f.data))
		delete(h.records, id)
	}
}

// stands reports whether an entry still has its record: the id may have been
// deleted, or have ended again since.
func (h *history) stands(e *ends, i int) bool {
	f, ok := h.records[e.line[i].id]
	return ok && f.at == e.line[i].at && h.of(f) == e
}

// tidy takes the entries without a record out of a line.
func (h *history) tidy(e *ends) {
	var line []end
	for i := range e.line {
		if h.stands(e, i) {
			line = append(line, e.line[i])
		}
	}
	e.line = line
}

// recording is a partition whose records of finished tasks are read or written at some time.
type recording struct {
	*partition

	now moment.Millis
}

// records is the records of the partition at some time.
func (p *partition) records(now moment.Millis) recording { return recording{p, now} }

// trim drops records that are too old, then the oldest of those that are too many. The records of failed tasks
// are counted apart, so that a busy agent does not push its dead letters out, and large
// records are weighed as well. A history is cut when it has a hundredth more than is kept, as
// one cut of many costs less than many cuts of one.
func (p recording) trim(agent string) {
	h := p.finished[agent]
	if h == nil {
		return
	}
	kept := p.store.config.Kept
	slack := min(kept/100, mostSlack)
	for _, e := range []*ends{&h.failed, &h.others} {
		most := e.n
		if e.n > kept+slack {
			// guard: history-cap
			most = kept
		}
		for len(e.line) > 0 && p.trimFirst(agent, h, e, most) {
			e.line = e.line[1:]
		}
	}
}

// trimFirst drops the oldest record of some that count together, if it is too old or one too many. It reports whether the
// first in line is done with.
func (p recording) trimFirst(agent string, h *history, e *ends, most int) bool {
	if !h.stands(e, 0) {
		return true
	}
	first := e.line[0]
	// Not too old: it stays, unless its number or its weight is too much. The
	// newest of all stays however large it is.
	if first.at > p.now.Add(-p.store.config.Retention) {
		if e.n <= most && (e.kib <= p.store.config.KeptBytes>>10 || len(e.line) == 1) {
			return false
		}
		// Only records that go before their time are remembered as gone: the end of retention is no loss.
		p.dropped(agent, first.id, h.records[first.id])
	}
	h.remove(first.id)
	return true
}

// mostSlack is by how many records a history may exceed the number to keep.
// Without it an agent with 10,000 kept records would have 100 more.
const mostSlack = 64

// weight is the weight of so many bytes, in KiB: small texts weigh nothing, as they are bounded by their number.
func weight(n int) int {
	if n < 4<<10 {
		return 0
	}
	return n >> 10
}

// dropped notes that a record had to go before its time. How its task ended stays known for a while.
func (p recording) dropped(agent, id string, f finished) {
	p.counts.Trimmed++
	p.counts.LastTrimmed = p.now
	ref := [2]string{agent, id}
	p.gone[ref] = finished{verb: f.verb, at: f.at}
	p.fading = append(p.fading, ref)
	for len(p.fading) > 0 {
		// Entries are in the order of their drops, which is nearly that of their ends:
		// those in front that are old enough go.
		if first, ok := p.gone[p.fading[0]]; ok && first.at > p.now-p.knownFor() {
			return
		}
		delete(p.gone, p.fading[0])
		p.fading = p.fading[1:]
	}
}

// knownFor is how long an id stays known after its end: a day, or the retention if that is shorter.
func (p recording) knownFor() moment.Millis {
	return moment.Millis(min(store.KnownFor, p.store.config.Retention).Milliseconds())
}

// remember adds a finished task to its agent's history.
func (p recording) remember(agent, id string, f finished) {
	h := p.finished[agent]
	if h == nil {
		h = newHistory()
		p.finished[agent] = h
	}
	// While there is one record only, a record that is too old or has the same id makes room at once.
	if !h.many {
		for other, old := range h.records {
			if other == id || old.at <= p.now.Add(-p.store.config.Retention) {
				h.remove(other)
			}
		}
		h.many = len(h.records) > 0
	}
	h.add(id, f)
}

// remembered is what is kept of a finished task: its record, or how it ended if the record was dropped before its time.
// A task older than the retention is gone for every caller, whether or not it was dropped already.
func (p recording) remembered(agent, id string) (f finished, dropped, ok bool) {
	if h := p.finished[agent]; h != nil {
		// guard: retention
		if f, ok = h.records[id]; ok && f.at > p.now.Add(-p.store.config.Retention) {
			return f, false, true
		}
	}
	f, ok = p.gone[[2]string{agent, id}]
	// guard: known-ids
	ok = ok && f.at > p.now-p.knownFor()
	return f, ok, ok
}

// erased forgets a finished task.
// It reports whether anything was known of it.
func (p recording) erased(agent, id string) bool {
	_, _, ok := p.remembered(agent, id)
	delete(p.gone, [2]string{agent, id})
	p.unrecord(agent, id)
	return ok
}

// unrecord takes a record away, if there is one.
// A history that has had one record at most goes with it, as in Redis.
func (p *partition) unrecord(agent, id string) {
	h := p.finished[agent]
	if h == nil {
		return
	}
	if _, there := h.records[id]; there {
		h.remove(id)
		if !h.many {
			delete(p.finished, agent)
		}
	}
}
