package dulyfile

// The file of a function or a service that others call: the same handlers and tasks, and no ways in of its own.

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// ParseFunction reads the file of a function, which is usually embedded in its program, with the environment over it. It refuses
// keys that only a process of duly's own has: who may call a function is the host's to say, and a key that does nothing would hide that.
func ParseFunction(ctx context.Context, name string, data []byte, vendors ...contract.Target) (*File, error) {
	f, err := Parse(ctx, name, data, Defaults{}, vendors...)
	if err != nil {
		return nil, err
	}
	for key, set := range map[string]bool{
		"http": f.HTTP != "", "store_share": f.StoreShare != 0, "token_env": f.TokenEnv != "", "tokens": len(f.Tokens) > 0, "senders": len(f.Senders) > 0,
		"memos": f.MemOS != nil, "langgraph": HasDoor(f, "langgraph"), "letta": HasDoor(f, "letta"), "a2a": f.A2A != nil,
	} {
		if set {
			return nil, &Error{File: name, Path: key, Err: errors.New("is for duly daemon and duly serve: leave it out of the file of a function")}
		}
	}
	f.Redis = f.Redis.With(os.Getenv)
	return f, f.alarmOfFunction(os.Getenv)
}

// Start registers the handlers of the file, and makes the tasks of the store those of it. Programs get no variable that opens the
// store or the API. A kind that has a handler already, in Go, is an error.
func (f *File) Start(ctx context.Context, s *core.Scheduler, logger *slog.Logger) (err error) {
	defer func() {
		if v := recover(); v != nil {
			text, known := v.(string) // core.Handle's, about a mistake in a program
			if !known {
				panic(v)
			}
			err = errors.New(text)
		}
	}()
	if err := f.Register(s, logger, new(exec.Children), redisstore.EnvURL, "DULY_TOKEN"); err != nil {
		return err
	}
	_, err = f.Define(ctx, s, logger)
	return err
}
