package exec

// Saves: a line "duly-save: {json}" stores a checkpoint while the program runs, and a line on file descriptor 4 answers it.

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// saveName is the name of the line after its prefix. Servers do not have it: an answer ends their run.
const saveName = "save"

// answerWithin is how long a program that does not read its answers can hold up what it says itself.
const answerWithin = time.Second

// save stores a checkpoint and answers: "saved", "lost" when another process has the task, or "failed: " and why. The program decides what to do then:
// a checkpoint that may not be stored is sent again with the next heartbeat.
func (o *output) save(value string) error {
	value = strings.TrimSpace(value)
	if !contract.IsJSON([]byte(value)) {
		return fmt.Errorf("%s%s needs a checkpoint that is JSON, not %.40q", contract.Prefix, saveName, value)
	}
	err := o.saves(json.RawMessage(value))
	switch _, invalid := errors.AsType[*core.InvalidError](err); {
	case err == nil:
		o.answer("saved")
	case invalid:
		return err
	case errors.Is(err, core.ErrLeaseLost):
		o.answer("lost")
	default:
		o.answer("failed: " + strings.ReplaceAll(contract.Text([]byte(err.Error())), "\n", " "))
	}
	return nil
}

// answer writes a line to file descriptor 4. A program that reads none of them fills the pipe in the end, and gets no more.
func (o *output) answer(line string) {
	if o.answers == nil {
		return
	}
	_ = o.answers.SetWriteDeadline(core.SystemClock{}.Now().Add(answerWithin))
	if _, err := o.answers.WriteString(line + "\n"); err != nil {
		o.hush()
	}
}

// hush ends the answers.
func (o *output) hush() {
	if o.answers != nil {
		_ = o.answers.Close()
		o.answers = nil
	}
}

// answering opens the pipe of the answers, and returns the program's end of it; nil for a program that has no run to save for.
func (o *output) answering() (*os.File, error) {
	if o.saves == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	o.answers = w
	return r, nil
}
