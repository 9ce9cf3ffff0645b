package cli

// The console: whether a process serves it, and how requests find it.

import (
	"net"
	"net/http"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/console"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// consoleOf is whether there is a console at an address. Where others can reach it, it has to be asked for: then it lets in whom the API does.
func consoleOf(c *dulyfile.File, at net.IP) dulyfile.Console {
	switch {
	case c.Console != "":
		return c.Console
	case at.IsLoopback():
		return dulyfile.ConsoleOn
	default:
		return dulyfile.ConsoleOff
	}
}

// withConsole puts the console beside the API. Its pages let in the same callers, with the same rights.
func (a *api) withConsole(s *core.Scheduler, api http.Handler, config *httpadapter.Config) http.Handler {
	if a.console == dulyfile.ConsoleOff {
		return api
	}
	pages := console.New(s, console.Options{
		Callers: config.Callers(), LocalOnly: config.LocalOnly, ReadOnly: a.console == dulyfile.ConsoleReadOnly, Version: a.version, Events: a.events,
		Stopping: a.stopping, Logger: config.Logger,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch path := r.URL.Path; {
		case path == console.Path || strings.HasPrefix(path, console.Path+"/"):
			pages.ServeHTTP(w, r)
		// A browser that was given the bare address.
		case path == "/" && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html"):
			http.Redirect(w, r, console.Path, http.StatusSeeOther)
		default:
			api.ServeHTTP(w, r)
		}
	})
}
