// Command run tries everything that duly promises, whole, and writes what was measured into docs/proof.md. It ends with code 1
// if a way of trying finds a fault.
package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/internal/proof"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "proof:", err)
		os.Exit(1)
	}
}

// atOnce is how many ways are tried at once: most of them wait for processes that they have killed.
const atOnce = 2

// run runs the ways that are named, or all. The document gets the figures of each that has found nothing.
func run(ctx context.Context, names []string, progress io.Writer) error {
	t := &trial{progress: progress}
	var lanes sync.WaitGroup
	next := make(chan *way)
	for range atOnce {
		lanes.Go(func() {
			for w := range next {
				t.run(ctx, w)
			}
		})
	}
	for i := range ways {
		if len(names) == 0 || slices.Contains(names, ways[i].name) {
			next <- &ways[i]
		}
	}
	close(next)
	lanes.Wait()
	if ctx.Err() == nil && t.found > 0 {
		return fmt.Errorf("%d of the ways above found a fault", t.found)
	}
	return ctx.Err()
}

// trial is what the lanes share: one of them writes at a time.
type trial struct {
	progress io.Writer

	mu    sync.Mutex
	found int // ways that found a fault
}

func (t *trial) run(ctx context.Context, w *way) {
	at := time.Now()
	figures, err := try(ctx, w)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		err = write("docs/proof.md", w.name, time.Since(at), figures)
	}
	if err != nil && ctx.Err() == nil {
		t.found++
	}
	tell(t.progress, w.name, time.Since(at), figures, err)
}

// tell says what a way has found.
func tell(progress io.Writer, name string, took time.Duration, figures []string, err error) {
	_, _ = fmt.Fprintf(progress, "== %s, %s\n", name, took.Round(time.Second))
	for _, f := range figures {
		_, _ = fmt.Fprintln(progress, "  ", f)
	}
	if err != nil {
		_, _ = fmt.Fprintln(progress, err)
	}
}

// try runs one way and returns the figures that its tests have logged. Its error has what the tests that failed have printed.
func try(ctx context.Context, w *way) ([]string, error) {
	args := append([]string{"test", "-count=1", "-v", "-timeout", "30m", "-run", w.tests}, w.packages...)
	cmd := exec.CommandContext(ctx, "go", args...) //nolint:gosec // names of tests and folders of this module
	cmd.Env = append(os.Environ(), proof.Env+"=whole")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // so that tests stop the servers that they started
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var figures []string
	tests := 0
	for lines := bufio.NewScanner(bytes.NewReader(out.Bytes())); lines.Scan(); {
		if _, figure, ok := strings.Cut(lines.Text(), "figure: "); ok {
			figures = append(figures, figure)
		}
		if strings.HasPrefix(lines.Text(), "--- PASS") {
			tests++
		}
	}
	switch {
	case err != nil:
		err = fmt.Errorf("%w\n%s", err, tail(out.String(), 200))
	case tests == 0:
		err = errors.New("no test was run")
	}
	return figures, err
}

// tail are the last lines of a text.
func tail(text string, n int) string {
	lines := strings.Split(text, "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}

// write puts the figures of a way into the document, in place of those that it has of it.
func write(file, name string, took time.Duration, figures []string) error {
	data, err := os.ReadFile(file) //nolint:gosec // of this module
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n| way | when, and for how long | found |\n|---|---|---|\n")
	for _, w := range ways {
		row := rowOf(string(data), w.name)
		if w.name == name {
			row = fmt.Sprintf("| %s | %s, %s | %s |\n", name, time.Now().UTC().Format(time.DateOnly), took.Round(time.Second), strings.Join(figures, "<br>"))
		}
		b.WriteString(row)
	}
	fmt.Fprintf(&b, "\nOn %d processors.\n\n", runtime.NumCPU())
	return proof.Write(file, "<!-- the figures: written by make proof -->", "<!-- the end of the figures -->", b.String())
}

// rowOf is the row that a document has of a way; empty if there is none.
func rowOf(document, name string) string {
	for line := range strings.Lines(document) {
		if strings.HasPrefix(line, "| "+name+" |") {
			return line
		}
	}
	return ""
}
