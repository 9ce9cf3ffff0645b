package world

// The register of invariants: each is a promise of duly in one sentence, and is asserted by the auditor under its name.

import "fmt"

// Invariant is something that holds in every history.
// The same assertion may be made in several places of the auditor; it counts as tried in each.
type Invariant struct {
	Name     string
	Promise  string // where it is promised: a number of docs/guarantees.md, or a section of the design
	Sentence string

	index int
}

// It is filled while the package is initialised, by the variables that name the invariants, and never
// changes after that.
var register []*Invariant

// Register are all invariants, in the order of their promises.
// The index of one is its place in Result.Tried.
func Register() []*Invariant { return register }

// A name is what the documents and the table of sown faults use, and does not change.
func invariant(name, promise, sentence string) *Invariant {
	i := &Invariant{Name: name, Promise: promise, Sentence: sentence, index: len(register)}
	register = append(register, i)
	return i
}

// Breach is a promise that was not kept.
// It is the first one of its history: a later failure may only be its consequence.
type Breach struct {
	*Invariant

	What string // what was seen
	At   string // when
}

// String says which promise, and what was seen instead.
func (b *Breach) String() string {
	return fmt.Sprintf("%s: %s\n  %s, %s", b.Name, b.Sentence, b.At, b.What)
}
