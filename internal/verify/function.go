package verify

// The subjects: a function of AWS Lambda, and a file of handlers.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/runtimeapi"
)

// Function is a program for the Runtime API of AWS Lambda. It gets tasks as SQS brings them, and ticks.
type Function struct{ env *runtimeapi.Environment }

// NewFunction makes one of a program that is started by command, with the address of its Runtime API. Close it when done.
func NewFunction(timeout time.Duration, command func(address string) *exec.Cmd) (*Function, error) {
	env, err := runtimeapi.New(timeout, command)
	if err != nil {
		return nil, err
	}
	return &Function{env: env}, nil
}

// Close kills the program.
func (f *Function) Close() { f.env.Close() }

// Kill is that of [Subject].
func (f *Function) Kill() { _ = f.env.Signal(syscall.SIGKILL) } // it may have ended by itself

// Deliver is that of [Subject]: one message of a queue for each task. A message that the function refuses is an error.
func (f *Function) Deliver(ctx context.Context, tasks []core.NewTask) error {
	type message struct {
		Source string `json:"eventSource"`
		ID     string `json:"messageId"`
		Body   string `json:"body"`
	}
	var event struct{ Records []message }
	for i := range tasks {
		body, err := json.Marshal(tasks[i])
		if err != nil {
			return err
		}
		event.Records = append(event.Records, message{"aws:sqs", tasks[i].ID, string(body)})
	}
	data, err := json.Marshal(event)
	if err != nil {
		return err
	}
	said, err := f.invoke(ctx, data)
	if err != nil {
		return err
	}
	var answer struct {
		Failures []struct {
			ID string `json:"itemIdentifier"`
		} `json:"batchItemFailures"`
	}
	if err := json.Unmarshal(said, &answer); err != nil {
		return fmt.Errorf("the answer to a batch of SQS: %w", err)
	}
	if n := len(answer.Failures); n > 0 {
		return fmt.Errorf("the function refused %d of %d messages, the first of them %s", n, len(tasks), answer.Failures[0].ID)
	}
	return nil
}

// Tick is that of [Subject].
func (f *Function) Tick(ctx context.Context, agent string) error {
	event, err := json.Marshal(map[string]any{"kind": "tick", "agent_ids": []string{agent}})
	if err != nil {
		return err
	}
	_, err = f.invoke(ctx, event)
	return err
}

// invoke hands over an event, and returns the answer.
func (f *Function) invoke(ctx context.Context, event []byte) ([]byte, error) {
	r, err := f.env.Invoke(ctx, event)
	switch {
	case err != nil:
		return nil, err
	case r.Exited:
		return nil, errors.New("the process has ended before the invocation was complete")
	case r.Failed:
		return nil, fmt.Errorf("the function failed: %s", r.Payload)
	default:
		return r.Payload, nil
	}
}

// Program is a program that makes one pull and exits, such as duly run-due with a file.
type Program struct {
	Scheduler *core.Scheduler                        // that tasks are submitted by
	Command   func(agents ...string) (cmd *exec.Cmd) // the pull of some agents

	mu  sync.Mutex
	cmd *exec.Cmd // that runs; nil if none does
}

// Deliver is that of [Subject].
func (p *Program) Deliver(ctx context.Context, tasks []core.NewTask) error {
	_, err := p.Scheduler.Submit(ctx, tasks...)
	return err
}

// Tick is that of [Subject]. The exit code of a pull with failed runs is one of the program's own: what became of them is in the store.
func (p *Program) Tick(_ context.Context, agent string) error {
	cmd := p.Command(agent)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what it has started dies with it
	p.mu.Lock()
	if err := cmd.Start(); err != nil {
		p.mu.Unlock()
		return err
	}
	p.cmd = cmd
	p.mu.Unlock()
	err := cmd.Wait()
	p.mu.Lock()
	p.cmd = nil
	p.mu.Unlock()
	return err
}

// Kill is that of [Subject], and of what the program has started.
func (p *Program) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}
