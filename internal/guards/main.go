// Command guards takes the guards of duly's promises out of copies of it, one after the other, and runs the tests that have to notice. A
// test that does not fail without its guard proves nothing.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/sow"
)

// guard is what keeps a promise: the fault is the promise without it.
type guard struct {
	promise string // its number in docs/guarantees.md
	sow.Fault

	folder string // of the test
	test   string // a pattern for go test -run
}

func main() {
	only := flag.String("only", "", "only the guards with this in their names")
	write := flag.Bool("write", false, "write the table of docs/proof.md")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	survived, err := takeOut(ctx, *only, *write)
	stop()
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "guards:", err)
		os.Exit(2)
	case survived > 0:
		fmt.Fprintf(os.Stderr, "%d guards can be taken out without their tests noticing\n", survived)
		os.Exit(1)
	}
}

// takeOut takes out each guard, and returns how many were not missed.
func takeOut(ctx context.Context, only string, write bool) (survived int, err error) {
	dir, err := os.MkdirTemp("", "guards")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tree, err := sow.Read(".")
	if err != nil {
		return 0, err
	}
	for i := range guards { // all have to fit before the first is tried
		if _, err := tree.Patched(&guards[i].Fault); err != nil {
			return 0, err
		}
	}
	var rows []string
	for i := range guards {
		g := &guards[i]
		if !strings.Contains(g.Name, only) {
			continue
		}
		missed, err := g.isMissed(ctx, tree, dir)
		if err != nil {
			return survived, err
		}
		verdict := "fails"
		if !missed {
			survived++
			verdict = "DOES NOT NOTICE"
		}
		fmt.Printf("%-4s %-28s %-50s %s\n", g.promise, g.Name, g.test, verdict)
		rows = append(rows, fmt.Sprintf("| %s | %s | `%s` | `%s` | %s |\n", g.promise, g.What, tree.File(&g.Fault), strings.ReplaceAll(g.test, "$", ""), verdict))
	}
	if !write || survived > 0 || only != "" {
		return survived, nil
	}
	return 0, writeTable("docs/proof.md", rows)
}

// isMissed reports whether the test of a guard passes with it and fails without it, and not because it does not compile.
func (g *guard) isMissed(ctx context.Context, tree *sow.Tree, dir string) (bool, error) {
	overlay, err := tree.Overlay(&g.Fault, dir)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-timeout", "90s", "-overlay", overlay, "-run", g.test, "./"+g.folder) //nolint:gosec // of this module
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && strings.Contains(string(out), "no tests to run"):
		return false, fmt.Errorf("%s: there is no test %s in %s", g.Name, g.test, g.folder)
	case err == nil:
		return false, nil
	case !errors.As(err, &failed):
		return false, err
	case strings.Contains(string(out), "[build failed]"):
		return false, fmt.Errorf("%s does not compile without its guard:\n%s", g.Name, out)
	}
	return true, nil
}

func writeTable(file string, rows []string) error {
	table := "| promise | without its guard | where | test | |\n|---|---|---|---|---|\n" + strings.Join(rows, "")
	return proof.Write(file, "<!-- guards: written by make guards -->", "<!-- end of guards -->", table)
}
