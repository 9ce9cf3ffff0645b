package remote

// Imports: lines of any number, in requests that a server takes.

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// mostLines is how many bytes of lines one request has, unless a single line has more: a server takes a megabyte.
const mostLines = 900 << 10

// importing is an import under way.
type importing struct {
	c     *connection
	ctx   context.Context //nolint:containedctx // it lives for one call
	as    string          // the agent that all lines are for; empty for the one that they name
	agent string          // whose lines come now
	lines bytes.Buffer    // that were read and not sent
	first int             // the number of the first of these
	done  operate.Imported
}

// Import stores what was exported, for an agent or those that the lines name. What comes back also counts the requests before one that failed.
func (c agents) Import(ctx context.Context, as string, from io.Reader) (operate.Imported, error) {
	im := &importing{c: c.connection, ctx: ctx, as: as, agent: as, first: 1}
	reader := bufio.NewReader(from)
	for n := 1; ; n++ {
		line, err := reader.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return im.done, err
		}
		if wrong := im.line(n, line); wrong != nil {
			return im.done, wrong
		}
		if err != nil {
			return im.done, im.send(n + 1)
		}
	}
}

// line takes one line, and sends those before it if they are of another agent or enough.
func (im *importing) line(n int, line []byte) error {
	var head struct {
		Agent string          `json:"agent_id"`
		Task  json.RawMessage `json:"task"`
	}
	// A line that is no JSON is the server's to refuse.
	if im.as == "" && json.Unmarshal(line, &head) == nil && head.Task == nil && head.Agent != "" && head.Agent != im.agent {
		if err := im.send(n); err != nil {
			return err
		}
		im.agent = head.Agent
	}
	if len(bytes.TrimSpace(line)) > 0 && im.agent == "" {
		return &core.InvalidError{Field: "agent_id", Reason: "is not named by the first line: name the agent with --as"}
	}
	if im.lines.Len() > 0 && im.lines.Len()+len(line) > mostLines {
		if err := im.send(n); err != nil {
			return err
		}
	}
	_, err := im.lines.Write(line)
	return err
}

// send sends the lines that were read; next is the number of the line after them.
func (im *importing) send(next int) error {
	defer func() {
		im.lines.Reset()
		im.first = next
	}()
	if len(bytes.TrimSpace(im.lines.Bytes())) == 0 {
		return nil
	}
	part, err := send(im.ctx, im.c, operation.Import, io.Reader(bytes.NewReader(im.lines.Bytes())), im.agent)
	if err != nil {
		return err
	}
	sum := &im.done
	sum.New, sum.Same, sum.Differs, sum.Refused = sum.New+part.New, sum.Same+part.Same, sum.Differs+part.Differs, sum.Refused+part.Refused
	for _, e := range part.Errors[:min(len(part.Errors), operate.MaxImportErrors-len(sum.Errors))] {
		e.Line += im.first - 1
		if refused, ok := e.Err.(*operate.RefusedError); ok { //nolint:errorlint // as it was read
			e.Err = &Error{Code: refused.Code, Detail: refused.Text, like: alike(refused.Code, refused.Text)}
		}
		sum.Errors = append(sum.Errors, e)
	}
	return nil
}
