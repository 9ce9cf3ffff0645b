package events

// How an event is printed: a line for people, or the JSON that came.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store/feed"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// print writes each event as it comes.
func (f *follower) print(stream io.Reader) error {
	name := ""
	lines := bufio.NewScanner(stream)
	// The default limit of a scanner is 64 KiB, and an event may have a longer error text.
	lines.Buffer(nil, mostLine)
	for lines.Scan() {
		// Comments, which are heartbeats, begin with a colon and have an empty field name.
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "":
			if lines.Text() == "" {
				name = "" // it has ended
			}
		case "id":
			if id, err := feed.ID(value); err == nil { // it may be printed, and typed again
				f.last = id
			}
		case "event":
			name = value
		case "data":
			if err := f.printEvent(name, value); err != nil {
				return err
			}
		}
	}
	return lines.Err()
}

// errNoEvent is the failure of a server that sends something other than an event.
var errNoEvent = &exit.Failure{Why: errors.New("the server sent something that is not an event"), Todo: "check that it is duly, of the same version", Code: exit.Failed}

// sayMissed says how many events did not come through.
func (f *follower) sayMissed(data string) error {
	var missed struct{ Count int }
	if json.Unmarshal([]byte(data), &missed) != nil {
		return errNoEvent
	}
	text := "events were missed: the store does not keep them any more, or nobody listened"
	if missed.Count > 0 {
		text = fmt.Sprintf("%d %s", missed.Count, text)
	}
	f.o.Say(text)
	return nil
}

// printEvent prints one event, and counts it. Fields that a newer server adds are ignored
// here, and shown with --json.
func (f *follower) printEvent(name, data string) error {
	if name == "missed" {
		if f.ended != nil {
			return nil
		}
		return f.sayMissed(data)
	}
	err := f.printKnown(data)
	if f.printed++; err == nil && f.printed == f.count {
		return errEnough
	}
	return err
}

// printKnown prints one event.
func (f *follower) printKnown(data string) error {
	var e struct {
		Event, Kind, ID, Outcome, Error, By, Reason string

		Time     time.Time
		Agent    string `json:"agent_id"`
		Key      string `json:"limit_key"`
		Duration int64  `json:"exec_duration_ms"`
		Count    int
		Note     string
	}
	if json.Unmarshal([]byte(data), &e) != nil || e.Event == "" {
		return errNoEvent
	}
	if f.ended != nil {
		if e.Event == string(model.EventFinish) {
			f.ended(e.Agent)
		}
		return nil
	}
	if f.ce || f.o.JSON {
		return f.printJSON(data)
	}
	// Times are local: the reader sits in front of this terminal, unlike those of a log.
	line := fmt.Sprintf("%s %-7s", e.Time.Local().Format(time.TimeOnly), e.Event)
	if e.Kind != "" {
		line += " " + e.Kind
	}
	// A command may be about more than one task: it names what it is about.
	switch {
	case e.ID != "":
		line += " " + table.ShellWord(e.Agent) + " " + table.ShellWord(e.ID)
	case e.Agent != "":
		line += " " + table.ShellWord(e.Agent)
	case e.Count > 0:
		line += " " + table.Count(e.Count, "task")
	case e.Key != "":
		line += " " + table.ShellWord(e.Key)
	case e.Kind == "":
		line += " everything"
	}
	if e.Outcome != "" {
		line += fmt.Sprintf(" %s after %d ms", e.Outcome, e.Duration)
	}
	if e.By != "" {
		line += " by " + table.First(e.By)
	}
	if e.Note != "" {
		line += " (" + table.First(e.Note) + ")"
	}
	if e.Reason != "" && e.Reason != e.Error {
		line += ": " + table.First(e.Reason)
	}
	if e.Error != "" {
		line += ": " + table.First(e.Error)
	}
	return f.answer(table.Plain(line))
}

// answer writes a line of the answer.
// A pipe whose reader has gone ends the command.
func (f *follower) answer(line string) error {
	if _, err := fmt.Fprintln(f.o.Stdout, line); err != nil {
		return &exit.Failure{Why: fmt.Errorf("cannot write: %w", err), Code: exit.Failed}
	}
	return nil
}

// printJSON writes an event, or one of CloudEvents that contains it, as one line of JSON, without the white space that it may have between its parts.
func (f *follower) printJSON(data string) error {
	var line bytes.Buffer
	if f.ce {
		e, err := contract.FeedEvent([]byte(data))
		if err != nil {
			return errNoEvent
		}
		whole, err := json.Marshal(e)
		if err != nil {
			return err
		}
		data = string(whole)
	}
	if err := json.Compact(&line, []byte(strings.ToValidUTF8(data, "\uFFFD"))); err != nil {
		return errNoEvent
	}
	return f.answer(table.JSON(line.String()))
}
