// Command mutants sows faults into a copy of duly, one after the other, and has the simulation look for each: a mutant that no
// history finds shows that an invariant is missing. The tree itself stays as it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/proof/sim/world"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow/faults"
)

func main() {
	n := flag.Int("n", 2000, "how many seeds each mutant is tried with")
	only := flag.String("only", "", "only the mutants whose names match this pattern")
	write := flag.Bool("write", false, "write the table of docs/proof.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	survived, err := hunt(ctx, *n, *only, *write)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	case survived > 0:
		fmt.Fprintf(os.Stderr, "%d mutants survived: an invariant is missing for each\n", survived)
		os.Exit(1)
	}
}

// found is what became of a mutant.
type found struct {
	*sow.Fault

	file            string
	seed, invariant string // empty if it survived
}

// hunt tries all mutants, and returns how many survived.
// A mutant that does not compile counts as one that survived: it has tried nothing.
func hunt(ctx context.Context, n int, only string, write bool) (int, error) {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := sow.Read(".")
	if err != nil {
		return 0, err
	}
	chosen, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	for i := range faults.Mutants { // all have to fit before the first is tried
		if _, err := tree.Patched(&faults.Mutants[i]); err != nil {
			return 0, err
		}
	}
	survived, expected := 0, map[string]string{}
	for _, row := range world.Features() {
		maps.Copy(expected, row.Faults)
	}
	var all []found
	for i := range faults.Mutants {
		m := &faults.Mutants[i]
		if !chosen.MatchString(m.Name) {
			continue
		}
		began := time.Now()
		f, err := try(ctx, tree, m, dir, n)
		if want := expected[m.Name]; err == nil && f.seed != "" && want != "" && f.invariant != want {
			err = fmt.Errorf("seed %s finds it by %s, and is to find it by %s", f.seed, f.invariant, want)
		}
		if err != nil {
			fmt.Printf("%-28s BROKEN: %v\n", m.Name, err)
			survived++
			continue
		}
		if f.seed == "" {
			survived++
			fmt.Printf("%-28s SURVIVED %d seeds: %s\n", m.Name, n, m.What)
		} else {
			fmt.Printf("%-28s seed %-5s %s (%s)\n", m.Name, f.seed, f.invariant, time.Since(began).Round(time.Second))
		}
		all = append(all, f)
	}
	if write {
		return survived, writeTable("docs/proof.md", all)
	}
	return survived, nil
}

// What the program prints when a history fails, and before each of them: a panic ends it before it can say more.
var (
	breach = regexp.MustCompile(`(?m)^seed (\d+): ([a-z-]+):`)
	seed   = regexp.MustCompile(`(?m)^playing (\d+)$`)
	panics = regexp.MustCompile(`(?m)^panic: `)
)

// try builds the simulation with a mutant, and plays seeds until one finds it.
// Nothing is shrunk, and the seeds begin at 1, so that the same mutant is found by the same seed each
// time. A fault in a script can show only in a store on Redis, and one of files only in a folder.
func try(ctx context.Context, tree *sow.Tree, m *sow.Fault, dir string, n int) (found, error) {
	overlay, err := tree.Overlay(m, dir)
	if err != nil {
		return found{}, err
	}
	program := dir + "/sim"
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", program, "./internal/proof/sim")
	if out, err := build.CombinedOutput(); err != nil {
		return found{}, fmt.Errorf("it does not compile: %w\n%s", err, out)
	}
	args := []string{"-seed", "1", "-n", fmt.Sprint(n), "-shrink=false", "-say"}
	switch {
	case tree.IsScript(m):
		args = append(args, "-store", "redis")
	case strings.HasPrefix(tree.File(m), "core/filestore/"):
		args = append(args, "-store", "folder")
	}
	// A mutant may keep a history from ending.
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if hit := breach.FindSubmatch(out); hit != nil {
		return found{m, tree.File(m), string(hit[1]), string(hit[2])}, nil
	}
	// A panic of duly is a breach without a name, of the history that was announced last.
	if played := seed.FindAllSubmatch(out, -1); len(played) > 0 && panics.Match(out) {
		return found{m, tree.File(m), string(played[len(played)-1][1]), "the-process-goes-on"}, nil
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		text := string(out)
		return found{}, fmt.Errorf("it ended without a breach:\n%s", text[max(0, len(text)-2000):])
	}
	return found{Fault: m, file: tree.File(m)}, err
}

// writeTable writes the table of the document.
func writeTable(file string, all []found) error {
	var b strings.Builder
	b.WriteString("| sown fault | where | found by seed | invariant |\n|---|---|---|---|\n")
	for _, f := range all {
		seed, invariant := f.seed, "`"+f.invariant+"`"
		if seed == "" {
			seed, invariant = "survived", ""
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", f.What, f.file, seed, invariant)
	}
	return proof.Write(file, tableBegins, tableEnds, b.String())
}

// The lines between which the document has the table.
const (
	tableBegins = "<!-- mutants: written by make mutants -->"
	tableEnds   = "<!-- end of mutants -->"
)
