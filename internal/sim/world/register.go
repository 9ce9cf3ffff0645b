package world

// The register of invariants: each is a promise of duly in one sentence, and is asserted by the auditor under its name.

import "fmt"

// Invariant is something that holds in every history.
type Invariant struct {
	Name     string
	Promise  string // where it is promised: a number of docs/guarantees.md, or a section of the design
	Sentence string

	index int
}

var register []*Invariant

// Register are all invariants, in the order of their promises.
func Register() []*Invariant { return register }

func invariant(name, promise, sentence string) *Invariant {
	i := &Invariant{Name: name, Promise: promise, Sentence: sentence, index: len(register)}
	register = append(register, i)
	return i
}

// Breach is a promise that was not kept.
type Breach struct {
	*Invariant

	What string // what was seen
	At   string // when
}

// String says which promise, and what was seen instead.
func (b *Breach) String() string {
	return fmt.Sprintf("%s: %s\n  %s, %s", b.Name, b.Sentence, b.At, b.What)
}
