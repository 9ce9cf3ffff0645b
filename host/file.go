package host

import (
	"context"
	"fmt"
	"log/slog"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/internal/contract"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// File is a duly.yaml that was read. It is not changed by its methods.
type File struct{ said *dulyfile.File }

// ReadFile reads a file, whose name is for errors alone, with the environment over it: DULY_REDIS_URL and the others of the reference. It fails
// if something in it makes no sense, naming the line, and for keys of duly's own processes, such as http and tokens: who may call a host is the host's to say.
// Handlers at a vendor, such as lambda, need its target: lambda.Target() of package handlers/lambda.
func ReadFile(ctx context.Context, name string, data []byte, vendors ...contract.Target) (*File, error) {
	said, err := dulyfile.ParseFunction(ctx, name, data, vendors...)
	if err != nil {
		return nil, err
	}
	return &File{said: said}, nil
}

// Redis is how to open the store.
func (f *File) Redis() redisstore.Config { return f.said.Redis }

// Config is the configuration of a scheduler, with the alarm of the file or of the environment, which is opened when it is first set.
func (f *File) Config() core.Config {
	c := f.said.Settings()
	if f.said.Alarm != nil {
		c.Alarm = f.said.Alarm.Late()
	}
	return c
}

// Approvals makes the addresses at which people answer questions, as `approvals:` of the file says; nil if it says nothing. Give them to
// the API, or serve [httpadapter.Approvals.Handler] where there is none.
func (f *File) Approvals() (*httpadapter.Approvals, error) {
	if f.said.Approvals == nil {
		return nil, nil //nolint:nilnil // nobody is asked
	}
	a, err := httpadapter.NewApprovals(f.said.Approvals.URL, []byte(f.said.Approvals.Secret))
	if err != nil {
		return nil, fmt.Errorf("approvals: %w", err)
	}
	return a, nil
}

// Hooks are the webhooks that the file receives, as `hooks:` says, with the secrets of the environment; nil if it says nothing. Give them to the API.
// The error names a variable that is missing.
func (f *File) Hooks() (httpadapter.Hooks, error) {
	inbound, err := f.said.OpenHooks(nil)
	if inbound == nil {
		return nil, err
	}
	return inbound, err
}

// Start registers the handlers of the file, and creates or updates its tasks. Programs that handlers start get neither the variables of the store and the
// API nor the secrets that the file names. A kind that has a handler in Go already is an error.
func (f *File) Start(ctx context.Context, s *core.Scheduler, logger *slog.Logger) error {
	return f.said.Start(ctx, s, logger)
}
