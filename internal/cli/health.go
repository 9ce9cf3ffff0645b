package cli

// The command health: for probes that can start a program beside a daemon, where its API listens on that machine alone.

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

// healthIn is how long an answer may take: probes of Kubernetes have a second by default.
const healthIn = 900 * time.Millisecond

// healthCommand asks what GET /healthz and GET /readyz say, which need no token.
func healthCommand(o *command.Options) *cobra.Command {
	var ready bool
	cmd := command.New("health", "Say whether a running duly responds: exit code 0 if it does, for probes", "  duly health\n  duly health --ready --server http://127.0.0.1:8080",
		func(cmd *cobra.Command, _ []string) error {
			at, err := o.Place(cmd.Context())
			if err != nil {
				return err
			}
			if at.Server.URL == "" {
				at.Server.URL = command.DefaultServer
			}
			if _, err := command.AddressOf(&at); err != nil {
				return err
			}
			path := "/healthz"
			if ready {
				path = "/readyz"
			}
			return health(cmd.Context(), strings.TrimSuffix(at.Server.URL, "/")+path)
		})
	cmd.Flags().BoolVar(&ready, "ready", false, "say whether it can work: that needs Redis")
	return cmd
}

// health fails unless a URL answers 200. Its exit code is 1 in any case, as probes of Docker give others a meaning.
func health(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, healthIn)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return &exit.Failure{Why: err, Code: exit.Failed, Todo: "start duly daemon --http " + command.DefaultAddress + ", or name another with --server"}
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10)) // what it says is for people
		return &exit.Failure{Why: errors.New(fmt.Sprint(res.Status, " ", strings.TrimSpace(string(body)))), Code: exit.Failed}
	}
	return nil
}
