package main

// Counting the instructions of redis-server: by the processor's counter where perf can read it, else by valgrind.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// counter tells how many instructions a server needs for some work.
type counter interface {
	// name is what figures have to have in common to be compared: two tools, and two versions of one, count differently.
	name() string
	// line is the command line that starts a server which can be counted, but for the server's own settings.
	line(binary string) []string
	// count returns the instructions that the server has executed during work.
	count(ctx context.Context, r *redisServer, work func() error) (float64, error)
	// close removes what the counter has written.
	close() error
}

// errNoCounter says why nothing can be counted on this machine.
var errNoCounter = errors.New("instructions cannot be counted here: the processor's counter is not available to perf, and valgrind is not installed")

// findCounter prefers perf, under which a server runs at its full speed.
func findCounter(ctx context.Context) (counter, error) {
	if err := perfEvent(instructions).try(ctx); err == nil {
		return perfEvent(instructions), nil
	}
	c, err := newCallgrind(ctx)
	if errors.Is(err, exec.ErrNotFound) {
		return nil, errNoCounter
	}
	return c, err
}

// instructions is perf's name of the instructions outside the kernel, which is all that valgrind sees as well.
const instructions = "instructions:u"

// perfEvent is a counter of the processor or the kernel, by perf's name of it.
type perfEvent string

func (e perfEvent) name() string              { return "perf-" + string(e) }
func (perfEvent) line(binary string) []string { return []string{binary} }
func (perfEvent) close() error                { return nil }

// try fails where the counter does not work: virtual machines often have none.
func (e perfEvent) try(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, "perf", "stat", "-x,", "-e", string(e), "true").CombinedOutput() //nolint:gosec // a constant
	if err != nil {
		return fmt.Errorf("perf stat: %w", err)
	}
	_, err = e.value(string(text))
	return err
}

// value reads the first field of perf's line about the event.
func (e perfEvent) value(text string) (float64, error) {
	for line := range strings.Lines(text) {
		if strings.Contains(line, ","+string(e)+",") {
			first, _, _ := strings.Cut(line, ",")
			if n, err := strconv.ParseFloat(first, 64); err == nil {
				return n, nil
			}
		}
	}
	return 0, fmt.Errorf("perf stat: no figure for %s in %q", e, text)
}

// count has perf watch the server. perf starts with its counter off, and is told to switch it on and off, so that neither
// its own start nor its end is counted.
func (e perfEvent) count(ctx context.Context, r *redisServer, work func() error) (_ float64, err error) {
	orders, tell, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("perf stat: %w", err)
	}
	answers, answer, err := os.Pipe()
	if err != nil {
		return 0, errors.Join(fmt.Errorf("perf stat: %w", err), orders.Close(), tell.Close())
	}
	defer func() { err = errors.Join(err, tell.Close(), answers.Close()) }()
	var out bytes.Buffer
	perf := exec.CommandContext(ctx, "perf", "stat", "-x,", "-e", string(e), "-D", "-1", "--control", "fd:3,4", //nolint:gosec // constants
		"-p", strconv.Itoa(r.cmd.Process.Pid))
	perf.Stderr, perf.ExtraFiles, perf.SysProcAttr = &out, []*os.File{orders, answer}, childAttributes()
	err = perf.Start()
	if err := errors.Join(err, orders.Close(), answer.Close()); err != nil {
		return 0, fmt.Errorf("perf stat: %w", err)
	}
	order := func(text string) error {
		if _, err := tell.WriteString(text + "\n"); err != nil {
			return fmt.Errorf("perf stat: %w", err)
		}
		if _, err := answers.Read(make([]byte, 16)); err != nil { // "ack"
			return fmt.Errorf("perf stat: %s: %w", text, err)
		}
		return nil
	}
	err = order("enable")
	if err == nil {
		err = errors.Join(work(), order("disable"))
	}
	_ = perf.Process.Signal(os.Interrupt)
	_ = perf.Wait() // it was interrupted: the error says so
	if err != nil {
		return 0, err
	}
	return e.value(out.String())
}

// callgrind runs the server on valgrind's processor, at a fiftieth of its speed and without any noise.
type callgrind struct {
	version, dir string
	parts        map[int]int // how many have been written for a process
}

func newCallgrind(ctx context.Context) (*callgrind, error) {
	text, err := exec.CommandContext(ctx, "valgrind", "--version").Output()
	if err != nil {
		return nil, fmt.Errorf("valgrind --version: %w", err)
	}
	dir, err := os.MkdirTemp("", "duly-callgrind")
	if err != nil {
		return nil, fmt.Errorf("callgrind: %w", err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(text)), "valgrind-")
	return &callgrind{version: version, dir: dir, parts: map[int]int{}}, nil
}

func (c *callgrind) name() string { return "callgrind-" + c.version }
func (c *callgrind) close() error { return os.RemoveAll(c.dir) }

// line has callgrind write what it has counted whenever the server is about to carry out an ECHO, which nothing else sends.
// The binary may be a script that starts the server.
func (c *callgrind) line(binary string) []string {
	return []string{
		"valgrind", "--quiet", "--tool=callgrind", "--trace-children=yes", "--dump-before=echoCommand",
		"--callgrind-out-file=" + c.file("%p"), "--log-file=" + filepath.Join(c.dir, "log"), binary,
	}
}

func (c *callgrind) file(process string) string { return filepath.Join(c.dir, "out."+process) }

func (c *callgrind) count(ctx context.Context, r *redisServer, work func() error) (float64, error) {
	if _, err := c.part(ctx, r); err != nil { // what came before
		return 0, err
	}
	if err := work(); err != nil {
		return 0, err
	}
	return c.part(ctx, r)
}

// part is how many instructions were executed since the last part.
func (c *callgrind) part(ctx context.Context, r *redisServer) (float64, error) {
	if err := r.client.Echo(ctx, "part").Err(); err != nil {
		return 0, fmt.Errorf("callgrind: %w", err)
	}
	pid := r.cmd.Process.Pid
	c.parts[pid]++
	name := c.file(strconv.Itoa(pid) + "." + strconv.Itoa(c.parts[pid]))
	text, err := os.ReadFile(name) //nolint:gosec // callgrind has just written it
	if err != nil {
		return 0, fmt.Errorf("callgrind has not written its figures; a redis-server without names of functions cannot be counted: %w", err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\nsummary: "))
	figure, _, _ := bytes.Cut(rest, []byte("\n"))
	n, err := strconv.ParseFloat(string(bytes.TrimSpace(figure)), 64)
	if err != nil {
		return 0, fmt.Errorf("callgrind: no summary in %s", filepath.Base(name))
	}
	return n, os.Remove(name)
}

// quietCron makes the server's own chores rare and alike: they are counted as well.
func quietCron() []string {
	return []string{"--hz", "1", "--dynamic-hz", "no", "--activerehashing", "no"}
}
