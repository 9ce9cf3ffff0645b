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
	"regexp"
	"strings"
	"syscall"

	"github.com/seed-6f6f2c11/duly/internal/proof"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow/faults"
)

func main() {
	only := flag.String("only", "", "only the guards whose names match this pattern")
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
	chosen, err := regexp.Compile(only)
	if err != nil {
		return 0, err
	}
	for i := range faults.Guards { // all have to fit before the first is tried
		if _, err := tree.Patched(&faults.Guards[i].Fault); err != nil {
			return 0, err
		}
	}
	var rows []string
	for i := range faults.Guards {
		g := &faults.Guards[i]
		if !chosen.MatchString(g.Name) {
			continue
		}
		missed, err := isMissed(ctx, tree, g, dir)
		if err != nil {
			return survived, err
		}
		verdict := "fails"
		if !missed {
			survived++
			verdict = "DOES NOT NOTICE"
		}
		fmt.Printf("%-4s %-28s %-50s %s\n", g.Promise, g.Name, g.Test, verdict)
		rows = append(rows, fmt.Sprintf("| %s | %s | `%s` | `%s` | %s |\n", g.Promise, g.What, tree.File(&g.Fault), strings.ReplaceAll(g.Test, "$", ""), verdict))
	}
	if !write || survived > 0 || only != "" {
		return survived, nil
	}
	return 0, writeTable("docs/proof.md", rows)
}

// isMissed reports whether the test of a guard passes with it and fails without it, and not because it does not compile.
func isMissed(ctx context.Context, tree *sow.Tree, g *faults.Guard, dir string) (bool, error) {
	overlay, err := tree.Overlay(&g.Fault, dir)
	if err != nil {
		return false, err
	}
	cmd := exec.CommandContext(ctx, "go", "test", "-count=1", "-vet=off", "-timeout", "90s", "-overlay", overlay, "-run", g.Test, "./"+g.Folder) //nolint:gosec // of this module
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.CombinedOutput()
	var failed *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case err == nil && strings.Contains(string(out), "no tests to run"):
		return false, fmt.Errorf("%s: there is no test %s in %s", g.Name, g.Test, g.Folder)
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
