package contract

// Await: the signal that a program or a server waits for, and what it receives.

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// awaited is what is waited for, by the value of [Await]: the key of a signal, or a JSON object such as {"key": "approval", "timeout": "48h",
// "on_timeout": "fail"}, and the checkpoint after it, as JSON. The checkpoint is for programs that print nothing else.
type awaited struct {
	Key        string          `json:"key"`
	Timeout    string          `json:"timeout"`
	OnTimeout  core.OnTimeout  `json:"on_timeout"`
	From       string          `json:"from"`
	Question   string          `json:"question"`
	Answer     json.RawMessage `json:"answer"`
	Checkpoint json.RawMessage `json:"checkpoint"`
}

// heard is the result of a run's wait for a signal.
type heard struct {
	Key      string          `json:"key"`
	Told     bool            `json:"told"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	TimedOut bool            `json:"timed_out"`
	How      core.Means      `json:"how,omitempty"`
	By       string          `json:"by,omitempty"`
	Question string          `json:"question,omitempty"`
}

// heardOf is the result of a run's wait; nil if it has not waited.
func heardOf(t *core.RunInfo) *heard {
	h, waited := t.Heard()
	if !waited {
		return nil
	}
	return &heard{Key: h.Key, Told: h.Told, Payload: h.Payload, TimedOut: h.TimedOut, How: h.How, By: h.By, Question: h.Question}
}

// await has the run wait.
func (s *Steering) await(value string) error {
	if s.said != "" && s.said != Await {
		return fmt.Errorf("%[1]s%[2]s and %[1]s%[3]s exclude each other: say one of them", Prefix, s.said, Await)
	}
	a, err := parseAwait(value)
	if err != nil {
		return err
	}
	signal := core.Signal{Key: a.Key, OnTimeout: a.OnTimeout, From: a.From, Question: a.Question, Answer: a.Answer}
	if a.Timeout != "" {
		if signal.Timeout, err = time.ParseDuration(a.Timeout); err != nil || signal.Timeout <= 0 {
			return fmt.Errorf("the timeout of %s%s must be a duration such as 48h, not %.40q", Prefix, Await, a.Timeout)
		}
	}
	if err := s.bounded(Await, string(a.Checkpoint)); err != nil {
		return err
	}
	s.said, s.outcome = Await, core.Await(signal, a.Checkpoint)
	return nil
}

// parseAwait reads a key or an object, and the checkpoint after it.
func parseAwait(value string) (awaited, error) {
	var a awaited
	if !strings.HasPrefix(value, "{") {
		key, rest, _ := strings.Cut(value, " ")
		a.Key, a.Checkpoint = key, json.RawMessage(strings.TrimSpace(rest))
	} else {
		d := json.NewDecoder(strings.NewReader(value))
		d.DisallowUnknownFields()
		if err := d.Decode(&a); err != nil {
			return a, fmt.Errorf("%s%s must be a key, or JSON such as {\"key\": \"approval\", \"timeout\": \"48h\"}, not %.80q", Prefix, Await, value)
		}
		if rest := strings.TrimSpace(value[d.InputOffset():]); rest != "" {
			a.Checkpoint = json.RawMessage(rest)
		}
	}
	if len(a.Checkpoint) == 0 {
		a.Checkpoint = json.RawMessage("null")
	}
	if a.Key == "" {
		return a, fmt.Errorf("%s%s needs a key", Prefix, Await)
	}
	return a, nil
}
