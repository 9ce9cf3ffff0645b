package cli

// The command mcp.

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/mcp"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/due"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/linelog"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
)

// mcpCommand serves one model on standard input and output, for one agent. What it schedules is run by the daemons of the store.
func mcpCommand(o *command.Options) *cobra.Command {
	var agent string
	scopes := []string{string(httpadapter.ScopeRead), string(httpadapter.ScopeWrite)}
	cmd := command.New("mcp", "Let a model schedule tasks and look at them, by MCP on standard input and output",
		"  duly mcp --agent ada -c duly.yaml\n  duly mcp --agent ada --server https://duly.example\n  claude mcp add duly -- duly mcp --agent ada -c /etc/duly/duly.yaml",
		func(cmd *cobra.Command, _ []string) error {
			at, err := o.Place(cmd.Context())
			if err != nil {
				return err
			}
			if err := scopesOf(scopes); err != nil {
				return err
			}
			if err := (&core.List{Agent: agent}).Check(); err != nil {
				return err
			}
			if at.Server.URL != "" {
				return command.OnServer(&at, func(c *remote.Client) error {
					ctx, err := inRun(cmd.Context(), c)
					if err != nil {
						return err
					}
					return remote.Models(ctx, c, agent, scopes, o.Stdin, o.Stdout)
				})
			}
			return serveModel(cmd.Context(), o, agent, scopes)
		})
	flags := cmd.Flags()
	flags.StringVar(&agent, "agent", "", "the agent that the model works for (default that of the file, or of the token)")
	flags.StringSliceVar(&scopes, "scopes", scopes, "what the model may do, of read, write and approve, and no more than the token; an approval by a model is none, so add approve for one whose client asks a person")
	return cmd
}

// scopesOf refuses scopes that no model needs.
func scopesOf(scopes []string) error {
	for _, scope := range scopes {
		if !slices.Contains(httpadapter.ModelScopes(), httpadapter.Scope(scope)) {
			return exit.Misuse("use some of read, write and approve", "--scopes has %q, which no model needs", scope)
		}
	}
	return nil
}

// serveModel serves the model from the store. It has no more rights than its scopes, for its agent.
func serveModel(ctx context.Context, o *command.Options, agent string, scopes []string) error {
	c, err := command.LoadFile(ctx, o)
	if err != nil {
		return err
	}
	if agent = cmp.Or(agent, c.Defaults.Agent); agent == "" {
		return exit.Misuse("name it with --agent", "for which agent is the model?")
	}
	grant := &httpadapter.Grant{Name: "mcp", Agents: []string{agent}}
	for _, scope := range scopes {
		grant.Scopes = append(grant.Scopes, httpadapter.Scope(scope))
	}
	models, err := due.Models(c, o.Version)
	if err != nil {
		return err
	}
	s, st, err := storage.OpenScheduler(ctx, c)
	if err != nil {
		return err
	}
	defer st.End(ctx)
	if ctx, err = inRun(ctx, s); err != nil {
		return err
	}
	models.Logger, models.Stopping = slog.New(linelog.New(os.Stderr)), ctx.Done()
	ctx = core.WithPrincipal(ctx, core.Principal{Name: grant.Name, Rights: grant})
	lines := &lineClient{in: bufio.NewReader(o.Stdin), out: o.Stdout, over: ctx.Done(), answered: make(chan struct{}, 1)}
	return mcp.New(s, models).Run(ctx, agent, &sdk.IOTransport{Reader: lines, Writer: lines})
}

// lineClient is a client on standard input and output. Its end comes only once all that it has asked is answered: the library would drop the rest.
type lineClient struct {
	in       *bufio.Reader
	out      io.Writer
	over     <-chan struct{}
	answered chan struct{}

	rest    []byte     // of the line that is being read
	writing sync.Mutex // the library writes, and so does Read

	mu    sync.Mutex
	asked int // requests without an answer
}

// Read reads a line at most. What is no message is answered here, for the library would end the connection.
func (l *lineClient) Read(into []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.in.ReadBytes('\n')
		if err != nil && len(line) == 0 {
			l.await()
			return 0, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if no := remote.NoMessage(line); no != nil {
			if _, err := l.write(no); err != nil {
				return 0, err
			}
			continue
		}
		line = append(line, '\n')
		l.count(line, 1)
		l.rest = line
	}
	n := copy(into, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// count counts a request, or the answer to one.
func (l *lineClient) count(line []byte, by int) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || len(m.ID) == 0 || (m.Method != "") != (by > 0) {
		return
	}
	l.mu.Lock()
	l.asked += by
	l.mu.Unlock()
	select {
	case l.answered <- struct{}{}:
	default:
	}
}

// await waits until nothing is left to answer.
func (l *lineClient) await() {
	for {
		l.mu.Lock()
		left := l.asked
		l.mu.Unlock()
		if left <= 0 {
			return
		}
		select {
		case <-l.answered:
		case <-l.over:
			return
		}
	}
}

// Write writes an answer, which the library does in one piece.
func (l *lineClient) Write(line []byte) (int, error) {
	n, err := l.write(line)
	l.count(line, -1)
	return n, err
}

// write writes a line, one at a time.
func (l *lineClient) write(line []byte) (int, error) {
	l.writing.Lock()
	defer l.writing.Unlock()
	return l.out.Write(line)
}

// Close leaves both open: they are the process's.
func (*lineClient) Close() error { return nil }
