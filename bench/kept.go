package main

// The kept counts of instructions: reading and writing their file, and telling what has changed.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// within is how much the sum of a shape may differ from the kept one, in percent, and phaseWithin one phase: a collection of
// Lua's garbage falls into one phase or into another, which moves them by up to 10 % and their sum by half a percent.
const (
	within      = 2
	phaseWithin = 20
)

// within is how much the count may differ, in percent.
func (c countOf) within() float64 {
	if c.phase == phaseSum {
		return within
	}
	return phaseWithin
}

// keptHead opens the file.
const keptHead = `# Thousands of instructions of redis-server for each task: counter, server, shape, phase, count.
# make bench-instructions compares with it; make bench-instructions UPDATE=1 writes it.
`

// compareInstructions prints what was counted beside what is kept, and fails if they differ by more than they may. With
// update it writes the file instead.
func compareInstructions(found *counts, file string, update bool, out io.Writer) error {
	all, err := readKept(file)
	if err != nil {
		return err
	}
	kept, err := keptOn(file, found.on)
	if err != nil {
		return err
	}
	changed := found.write(out, kept)
	switch {
	case update:
		return writeKept(file, append(slices.DeleteFunc(all, func(k *counts) bool { return k.on == found.on }), found))
	case len(kept) == 0:
		_, _ = fmt.Fprintf(out, "\n%s has no counts of %s: nothing was compared. UPDATE=1 adds them.\n", file, found.on)
		return nil
	case len(changed) == 0:
		return found.missing(kept, file)
	}
	_, _ = fmt.Fprintf(out, "\nChanged by more than %d %% (a phase: %d %%):\n", within, phaseWithin)
	(&counts{on: found.on, counts: changed}).write(out, kept)
	return fmt.Errorf("%s of instructions differ from %s: if that is meant, write it with UPDATE=1", count(len(changed), "count"), file)
}

// keptOn is what a file keeps of a counter and a server; empty for nothing.
func keptOn(file, on string) (map[string]float64, error) {
	all, err := readKept(file)
	kept := map[string]float64{}
	for _, k := range all {
		if k.on == on {
			kept = k.byName()
		}
	}
	return kept, err
}

// missing fails if something is kept that was not counted.
func (f *counts) missing(kept map[string]float64, file string) error {
	counted := f.byName()
	for _, name := range slices.Sorted(maps.Keys(kept)) {
		if _, ok := counted[name]; !ok {
			return fmt.Errorf("%s keeps %q, which is no longer counted: write it with UPDATE=1", file, name)
		}
	}
	return nil
}

// changed is how far a count is from what is kept, as a part of what it may be.
func (c countOf) changed(kept map[string]float64) float64 {
	was, known := kept[c.key()]
	if !known {
		return math.Inf(1)
	}
	return math.Abs(100*(c.kilo-was)/was) / c.within()
}

func (c countOf) key() string { return c.shape + " " + c.phase }

func (f *counts) byName() map[string]float64 {
	m := make(map[string]float64, len(f.counts))
	for _, c := range f.counts {
		m[c.key()] = c.kilo
	}
	return m
}

// write prints the counts and returns those that differ from the kept ones, or are not among them.
func (f *counts) write(out io.Writer, kept map[string]float64) (changed []countOf) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintf(t, "%s\nshape\tphase\tkI a task\tkept\tchange\ttarget\n", f.on)
	for _, c := range f.counts {
		was, known := kept[c.key()]
		difference, text := 0.0, "new"
		if known {
			difference = 100 * (c.kilo - was) / was
			text = fmt.Sprintf("%+.1f %%", difference)
		}
		if c.changed(kept) > 1 {
			changed = append(changed, c)
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%.2f\t%s\t%s\t%s\n", c.shape, c.phase, c.kilo, cell(was, known), text, c.target())
	}
	_ = t.Flush()
	return changed
}

// target is the most that a whole shape may need, and whether it does.
func (c countOf) target() string {
	most, ok := map[string]float64{"life-1": 80, "life-20": 90, "run-1": 60, "run-5": 60, "run-20": 60, "run-100": 60}[c.shape]
	switch {
	case !ok || c.phase != phaseSum:
		return ""
	case c.kilo <= most:
		return atMost(most).text + " met"
	default:
		return atMost(most).text + " NOT MET"
	}
}

// readKept reads the counts of each counter and server; none if there is no file yet.
func readKept(file string) ([]*counts, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the user names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read counts: %w", err)
	}
	var all []*counts
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(line, "#") {
			continue
		}
		const columns = 5
		if len(fields) != columns {
			return nil, fmt.Errorf("%s: %q does not have %d fields", file, strings.TrimSpace(line), columns)
		}
		kilo, err := strconv.ParseFloat(fields[4], 64)
		if err != nil || kilo <= 0 {
			return nil, fmt.Errorf("%s: %q is not a count", file, fields[4])
		}
		on := fields[0] + " " + fields[1]
		at := slices.IndexFunc(all, func(k *counts) bool { return k.on == on })
		if at < 0 {
			at = len(all)
			all = append(all, &counts{on: on})
		}
		all[at].counts = append(all[at].counts, countOf{fields[2], fields[3], kilo})
	}
	return all, nil
}

func writeKept(file string, all []*counts) error {
	var b strings.Builder
	b.WriteString(keptHead)
	slices.SortFunc(all, func(a, b *counts) int { return strings.Compare(a.on, b.on) })
	for _, k := range all {
		for _, c := range k.counts {
			_, _ = fmt.Fprintf(&b, "%s %s %s %.2f\n", k.on, c.shape, c.phase, c.kilo)
		}
	}
	if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil { //nolint:gosec // it is part of the repository
		return fmt.Errorf("write counts: %w", err)
	}
	return nil
}

// changed is how far a shape is from what is kept, as a part of what it may be: over 1 is too far.
func (f *counts) changed(shape string, kept map[string]float64) float64 {
	most := 0.0
	for _, c := range f.counts {
		if c.shape == shape {
			most = max(most, c.changed(kept))
		}
	}
	return most
}

// nearer takes those shapes of more that are nearer to what is kept.
func (f *counts) nearer(more *counts, kept map[string]float64) {
	was, again := &counts{counts: slices.Clone(f.counts)}, more.byName()
	for i, c := range f.counts {
		if kilo, counted := again[c.key()]; counted && more.changed(c.shape, kept) < was.changed(c.shape, kept) {
			f.counts[i].kilo = kilo
		}
	}
}

// middle is, of counts of the same shapes, the one of each shape whose sum is in the middle.
func middle(tries []*counts) *counts {
	sums := func(f *counts, shape string) float64 { return f.byName()[shape+" "+phaseSum] }
	m := &counts{on: tries[0].on}
	for _, c := range tries[0].counts {
		sorted := slices.SortedFunc(slices.Values(tries), func(a, b *counts) int { return cmp.Compare(sums(a, c.shape), sums(b, c.shape)) })
		c.kilo = sorted[len(sorted)/2].byName()[c.key()]
		m.counts = append(m.counts, c)
	}
	return m
}
