// Package audit is what an audit of a store looks at, a page at a time, and the faults that it finds.
package audit

// Page is a page of a partition's live tasks that is to be looked at.
type Page struct {
	Partition int
	Cursor    string // where the page begins: from the page before; empty for the first
	Repair    bool   // to put back lost tasks
}

// Result is what the audit of a page has found.
type Result struct {
	Next   string // where the next page begins; empty if this was the last
	Tasks  int    // how many were looked at; a task that is stored again meanwhile may be counted twice
	Faults []Fault
}

// Fault is something that would have stopped silently. Agent and ID are empty if it is not about one.
type Fault struct {
	Agent string `json:"agent_id,omitempty"`
	ID    string `json:"id,omitempty"`
	Code  Code   `json:"code"`
}

// Code distinguishes faults.
type Code string

// The faults. All but the last two can be repaired.
const (
	Lost     Code = "lost"     // a task that neither waits nor runs nor is parked
	Stranded Code = "stranded" // a task that is parked where nothing puts it back
	Doubled  Code = "doubled"  // a task that runs and waits, or is parked, as well: it would run twice at once
	// Miscounted is a count that differs from what exists: of parked tasks, of an agent's tasks, of the tasks of a group,
	// with its agent, of those of a kind, or of all. Counts of groups, kinds and all are compared if nothing has changed while
	// the audit counted, and nothing else was wrong.
	Miscounted Code = "miscounted"
	Asleep     Code = "asleep"     // an agent or a partition that would be looked at too late
	Unreadable Code = "unreadable" // a record that differs from what was written
	Gone       Code = "gone"       // an index entry whose task no longer exists
)

// Codes are those of all faults.
func Codes() []Code {
	return []Code{Lost, Stranded, Doubled, Miscounted, Asleep, Unreadable, Gone}
}

// Repairable reports whether a repair mends such a fault.
func (c Code) Repairable() bool { return c != Unreadable && c != Gone }
