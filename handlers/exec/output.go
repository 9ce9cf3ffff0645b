package exec

// What a program says: its result, the end of its errors, and the lines that steer its run.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// output is what a program says: on its standard output, its standard error, and file descriptor 3.
// It is filled by three goroutines, which have ended when the program's end is looked at.
type output struct {
	stdout               head // a result, and a byte more if it is longer
	stdoutEnd, stderrEnd tail
	printed              io.Writer                              // takes both of them, for people; nil for a gate
	steering             *contract.Steering                     // nil for a gate and a batch, which have no run of their own to steer
	saves                func(checkpoint json.RawMessage) error // stores a checkpoint; nil without steering
	answers              *os.File                               // where saves are answered; of the goroutine that reads descriptor 3
	unsteered            string                                 // why there is none to steer
	longest              int                                    // line on descriptor 3
	wrong                error                                  // the first line there that makes no sense
}

// readers take what is written to each of the three until there is no more. Each is called in a goroutine of its own.
func (o *output) readers() [3]func(io.Reader) {
	printed := o.printed
	if printed == nil {
		printed = io.Discard
	}
	return [3]func(io.Reader){
		func(r io.Reader) { _, _ = io.Copy(io.MultiWriter(&o.stdout, &o.stdoutEnd, printed), r) }, // what could be read counts
		func(r io.Reader) { _, _ = io.Copy(io.MultiWriter(&o.stderrEnd, printed), r) },
		o.steer,
	}
}

// steer reads the lines that steer the run, as they come. It continues after an invalid line, so that the program
// does not hang.
func (o *output) steer(r io.Reader) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, o.longest)
	// After the first mistake nothing counts any more, but is still read.
	for o.wrong == nil && lines.Scan() {
		o.wrong = o.line(lines.Text())
	}
	if lines.Err() == bufio.ErrTooLong { //nolint:errorlint // it is not wrapped
		o.wrong = fmt.Errorf("a line on file descriptor 3 is longer than %d bytes", o.longest)
	}
	_, _ = io.Copy(io.Discard, r)
}

// line reads one line; an empty one means nothing.
func (o *output) line(line string) error {
	name, value, ok := strings.Cut(strings.TrimSpace(line), ":")
	if name == "" && !ok {
		return nil
	}
	name, known := strings.CutPrefix(strings.ToLower(name), contract.Prefix)
	if !ok || !known {
		return fmt.Errorf("a line on file descriptor 3 must be such as duly-snooze: 10m, not %.40q", line)
	}
	if o.steering == nil {
		return fmt.Errorf("%s%.40s on file descriptor 3 %s", contract.Prefix, name, o.unsteered)
	}
	if name == saveName {
		return o.save(value)
	}
	return o.steering.Say(name, value)
}

// explain adds what the program said last to the error that it ended with.
// Both are bounded, and standard error comes first: most programs say there what went wrong.
func (o *output) explain(err error) error {
	stderr, stdout := o.stderrEnd.text(), o.stdoutEnd.text()
	switch {
	case stderr != "" && stdout != "":
		return fmt.Errorf("%w: %s (stdout: %s)", err, stderr, stdout)
	case stderr != "" || stdout != "":
		return fmt.Errorf("%w: %s", err, stderr+stdout)
	default:
		return err
	}
}

// head keeps the beginning of what is written to it, and lets the rest go.
// It never fails a write, so that a program is not stopped by the size of its output.
type head struct {
	bytes.Buffer

	most int
}

// Write never fails.
func (h *head) Write(p []byte) (int, error) {
	h.Buffer.Write(p[:min(len(p), h.most-h.Len())])
	return len(p), nil
}

// tail keeps the end of what is written to it.
type tail struct {
	kept []byte
	most int
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if extra := len(t.kept) - t.most; extra > 0 {
		t.kept = append(t.kept[:0], t.kept[extra:]...)
	}
	return len(p), nil
}

// text is what was kept, as valid UTF-8 without space around it.
func (t *tail) text() string { return strings.TrimSpace(contract.Text(t.kept)) }
