package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// defaultServer is where duly daemon --http and duly serve listen unless they are told otherwise.
const defaultServer = "http://" + defaultAddress

func (p *process) eventsCommand(o *options) *cobra.Command {
	f := &follower{p: p, o: o}
	cmd := command("events", "Follow what happens to tasks, as a running duly daemon --http or duly serve tells it",
		"  duly events\n  duly events --server https://duly.example --agent ada --json     # with its token in $DULY_TOKEN",
		func(cmd *cobra.Command, _ []string) error { return f.follow(cmd.Context()) })
	flags := cmd.Flags()
	flags.StringVar(&f.server, "server", defaultServer, "URL of the HTTP API")
	flags.StringVar(&f.agent, "agent", "", "only events of this agent")
	flags.StringVar(&f.kind, "kind", "", "only events of this kind")
	return o.withJSON(cmd)
}

// follower reads the stream of events of a server.
type follower struct {
	p                   *process
	o                   *options
	server, agent, kind string
}

// follow prints events until ctx is done; the end of the stream is a failure.
func (f *follower) follow(ctx context.Context) error {
	r, err := f.request(ctx)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(r)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return &failure{
			why: fmt.Errorf("cannot reach %s", r.URL.Host), code: exitFailed,
			todo: "start duly daemon --http there, or name another with --server",
		}
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return refusal(res)
	}
	f.p.say("following " + r.URL.Host)
	err = f.print(res.Body)
	switch {
	case ctx.Err() != nil:
		return nil
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return err
	default:
		return &failure{why: errors.New("the server ended the stream"), todo: "call again once it is back", code: exitFailed}
	}
}

func (f *follower) request(ctx context.Context) (*http.Request, error) {
	u, err := url.Parse(f.server)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, usage("use one such as "+defaultServer, "--server must be a URL with http:// or https://")
	}
	u = u.JoinPath("v1", "events")
	query := url.Values{}
	for name, value := range map[string]string{"agent_id": f.agent, "kind": f.kind} {
		if value != "" {
			query.Set(name, value)
		}
	}
	u.RawQuery = query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, err
	}
	if token, _, _ := strings.Cut(os.Getenv(tokenEnv), ","); token != "" {
		r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	}
	return r, nil
}

// refusal is the failure of a request that was not answered with a stream.
func refusal(res *http.Response) error {
	const most = 4096
	var problem struct{ Code, Detail string }
	_ = json.NewDecoder(io.LimitReader(res.Body, most)).Decode(&problem) // if it is none, the status says enough
	f := &failure{why: fmt.Errorf("the server says %s %s", res.Status, problem.Detail), code: exitFailed}
	switch {
	case res.StatusCode == http.StatusUnauthorized:
		f.todo = "set $" + tokenEnv + " to one of its tokens"
	case problem.Code == "no_route" || res.StatusCode == http.StatusNotFound:
		f.todo = "it has no events: is it duly daemon --http or duly serve?"
	}
	return f
}

// print writes each event as it comes.
func (f *follower) print(stream io.Reader) error {
	name := ""
	lines := bufio.NewScanner(stream)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
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

func (f *follower) printEvent(name, data string) error {
	if f.o.json {
		_, err := fmt.Fprintln(f.p.stdout, data)
		return err
	}
	if name == "missed" { // how many events did not come through
		var missed struct{ Count int }
		_ = json.Unmarshal([]byte(data), &missed)
		f.p.say(fmt.Sprintf("%d events were missed: they came faster than they could be sent", missed.Count))
		return nil
	}
	var e struct {
		Event, Kind, ID, Outcome, Error string
		Time                            time.Time
		Agent                           string `json:"agent_id"`
		Duration                        int64  `json:"exec_duration_ms"`
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return fmt.Errorf("what the server sends is no event: %w", err)
	}
	line := fmt.Sprintf("%s %-7s %s %s %s", e.Time.Local().Format(time.TimeOnly), e.Event, e.Kind, shellWord(e.Agent), shellWord(e.ID))
	if e.Outcome != "" {
		line += fmt.Sprintf(" %s after %d ms", e.Outcome, e.Duration)
	}
	if e.Error != "" {
		line += ": " + firstOf(e.Error)
	}
	_, err := fmt.Fprintln(f.p.stdout, plain(line))
	return err
}
