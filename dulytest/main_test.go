package dulytest_test

// What the tests share: a test that may fail, and a handler to try things with.

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/core"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// note is a payload.
type note struct {
	Text string `json:"text"`
}

// probe is a test that notes how it was failed.
type probe struct {
	testing.TB

	failed []string
}

func (*probe) Helper() {}

func (*probe) Context() context.Context { return context.Background() }

func (p *probe) Fatalf(format string, args ...any) {
	p.failed = append(p.failed, fmt.Sprintf(format, args...))
}

var errBoom = errors.New("boom")

// echo is a handler that returns its payload.
func echo(_ context.Context, task *core.Task[note]) error { return task.SetResult(task.Payload) }
