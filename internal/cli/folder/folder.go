// Package folder is the store of a user without a Redis: which folder it is, and the socket by which commands reach the daemon that has it open.
package folder

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// Env is the variable of --store.
const Env = "DULY_STORE"

// Memory is a store that ends with its process; Scheme is followed by a folder, or by nothing for the user's own one.
const (
	Memory = "memory"
	Scheme = "file:"
)

// socketName is the socket of a daemon, in its folder.
const socketName = "socket"

// mostSocket is how long the path of a socket may be on all systems.
const mostSocket = 100

// Dir is the folder of a store that --store, its variable or the file names. An empty one is the user's own. It fails with a *[core.ConfigError] for
// what names none.
func Dir(store string) (string, error) {
	path, named := strings.CutPrefix(store, Scheme)
	switch {
	case store != "" && !named:
		return "", &core.ConfigError{Field: "--store", Reason: fmt.Sprintf("must be %sFOLDER or %s, not %q", Scheme, Memory, store)}
	case path == "":
		return own()
	}
	path = strings.TrimPrefix(path, "//") // file:///var/lib/duly
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &core.ConfigError{Field: "--store", Reason: "is below ~, and no home is known"}
		}
		path = filepath.Join(home, rest)
	}
	return filepath.Abs(path)
}

// own is the user's folder: that which systemd gives a service, else one in the folder for state.
func own() (string, error) {
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":")
	if filepath.IsAbs(first) {
		return filepath.Join(first, "store"), nil
	}
	state := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(state) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", &core.ConfigError{Field: "--store", Reason: "is needed: no Redis is configured, and no home is known to keep tasks in"}
		}
		state = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(state, "duly", "store"), nil
}

// Socket is where the daemon of a folder listens.
func Socket(dir string) string { return filepath.Join(dir, socketName) }

// Listen listens there, for this user alone. The folder is this process's, so a socket that is there was left by one that was killed.
func Listen(ctx context.Context, dir string) (net.Listener, error) {
	path := Socket(dir)
	if len(path) > mostSocket {
		return nil, fmt.Errorf("the path %s is too long for a socket: choose a shorter one with --store", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	// The folder is closed to other users, also before the mode is set.
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return l, os.Chmod(path, 0o600)
}

// Answers reports whether a process listens for a folder.
func Answers(ctx context.Context, dir string) bool {
	c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", Socket(dir))
	if err != nil {
		return false
	}
	return c.Close() == nil
}
