package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Models: a client of the Model Context Protocol that speaks lines, on a server that speaks HTTP. Each line is a request of its own, so that nothing
// is lost with a server that is started again between two.

// mostModelLine is the longest line of a client, in bytes.
const mostModelLine = 8 << 20

// message is what has to be known of a line: which call it is, and of what, as the server wants it in headers too.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name string         `json:"name"`
		URI  string         `json:"uri"`
		Meta map[string]any `json:"_meta"`
	} `json:"params"`
	Result struct {
		Version string `json:"protocolVersion"`
	} `json:"result"`
}

// models is one client, and the version that it has agreed upon.
type models struct {
	c        *Client
	endpoint string
	out      io.Writer

	mu      sync.Mutex
	version string
}

// Models hands the lines of a client to a server, for an agent and with no more than some scopes, and the server's answers to the client, until the client has no more. Requests do
// not wait for each other.
func Models(ctx context.Context, c *Client, agent string, scopes []string, in io.Reader, out io.Writer) error {
	to := url.Values{"scopes": {strings.Join(scopes, ",")}}
	if agent != "" {
		to.Set("agent", agent)
	}
	m := &models{c: c, endpoint: c.base + "/mcp?" + to.Encode(), out: out}
	var calls sync.WaitGroup
	defer calls.Wait()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, mostModelLine)
	for ctx.Err() == nil && lines.Scan() {
		line := bytes.Clone(bytes.TrimSpace(lines.Bytes()))
		if len(line) == 0 {
			continue
		}
		if no := NoMessage(line); no != nil {
			m.write(no)
			continue
		}
		var said message
		_ = json.Unmarshal(line, &said) // the server says what is wrong with its fields
		if said.Method == "initialize" {
			m.pass(ctx, line, &said) // what comes next is in the version that this agrees upon
			continue
		}
		calls.Go(func() { m.pass(ctx, line, &said) })
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("read a line of the client: %w", err)
	}
	return nil
}

// pass sends a line, and writes the answer. A request that has none is answered with why.
func (m *models) pass(ctx context.Context, line []byte, said *message) {
	answer, err := m.send(ctx, line, said)
	if err != nil && len(said.ID) > 0 {
		why, _ := json.Marshal(err.Error()) // a text always has a JSON
		answer = fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":%s}}`, said.ID, why)
	}
	if answer = bytes.TrimSpace(answer); len(answer) > 0 {
		m.write(append(answer, '\n'))
	}
}

// write writes a line of answer.
func (m *models) write(line []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, _ = m.out.Write(line) // a client that has gone away reads no answers, and ends its lines
}

// NoMessage is the line that answers one that is no message of the protocol; nil for one that is. It must not end the connection: what was asked before and behind it is good.
func NoMessage(line []byte) []byte {
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) != nil || len(batch) == 0 {
		batch = []json.RawMessage{line}
	}
	for _, one := range batch {
		if _, err := jsonrpc.DecodeMessage(one); err == nil {
			continue
		}
		code, text := jsonrpc.CodeInvalidRequest, "not a message of JSON-RPC 2.0: send an object with jsonrpc, id, method and params"
		if !json.Valid(line) {
			code, text = jsonrpc.CodeParseError, "not JSON: send each message as one line of JSON"
		}
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":null,"error":{"code":%d,"message":%q}}`+"\n", code, text)
	}
	return nil
}

// send sends a line. The answer is empty if there is none.
func (m *models) send(ctx context.Context, line []byte, said *message) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, workWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.endpoint, bytes.NewReader(line))
	if err != nil {
		return nil, err
	}
	m.head(request, said)
	res, err := m.c.http.Do(request)
	if err != nil {
		return nil, m.c.unreachable(err)
	}
	defer func() { _ = res.Body.Close() }()
	// An error of the protocol has a status of its own, and is JSON or a text; one of the server has a problem as its body.
	media, _, _ := strings.Cut(res.Header.Get("Content-Type"), ";")
	if res.StatusCode > 299 && media != "application/json" && (media != "text/plain" || res.StatusCode != http.StatusBadRequest) {
		return nil, m.c.refusal(res)
	}
	answer, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err != nil {
		return nil, m.c.unreachable(err)
	}
	if media == "text/plain" {
		return nil, errors.New(strings.TrimSpace(string(answer)))
	}
	var back message
	if said.Method == "initialize" && json.Unmarshal(answer, &back) == nil {
		m.version = back.Result.Version
	}
	return bytes.ReplaceAll(answer, []byte{'\n'}, nil), nil
}

// head are the headers of a line.
func (m *models) head(r *http.Request, said *message) {
	h := r.Header
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
	if m.c.token != "" {
		h.Set("Authorization", "Bearer "+m.c.token)
	}
	if parent := parentOf(r.Context()); parent != "" {
		h.Set("Duly-Parent", parent)
	}
	version, _ := said.Params.Meta["io.modelcontextprotocol/protocolVersion"].(string)
	if version == "" {
		version = m.version
	}
	if version != "" {
		h.Set("Mcp-Protocol-Version", version)
	}
	if said.Method != "" {
		h.Set("Mcp-Method", said.Method)
	}
	if name := said.Params.Name + said.Params.URI; name != "" {
		h.Set("Mcp-Name", name)
	}
}
