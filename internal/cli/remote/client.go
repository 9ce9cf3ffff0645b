// Package remote is a scheduler behind the HTTP API of a running duly daemon or duly serve, for commands that are given --server: its methods
// are those of core.Scheduler, with the same answers and the same errors.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
	"github.com/seed-6f6f2c11/duly/core"
)

// How long a server may take: to accept a connection, to answer a question, and to answer what works through all of an agent or runs tasks,
// which is longer than a server lets one request take.
const (
	connectWithin = 10 * time.Second
	answerWithin  = time.Minute
	workWithin    = 6 * time.Minute
)

// mostAnswer is the most bytes that are read of an answer: more than a page of a thousand tasks with the longest payloads has.
const mostAnswer = 128 << 20

// Config says where a server is, and who calls it.
type Config struct {
	// URL is the API's, with http:// or https://, and a path if the API is mounted below one.
	URL string
	// Token is sent with every request, if it is not empty. It is never logged, and no error has it.
	Token string
	// Socket is the socket of a server of this user on this machine; URL only names it for requests then.
	Socket string
	// InsecureHTTP allows to send the token over http:// to another machine.
	InsecureHTTP bool
}

// Client calls one server. Make it with [New], and close it. It may be used by several goroutines.
type Client struct {
	*connection

	tasks
	orders
	rules
	agents
	state
}

// connection makes the calls.
type connection struct {
	base  string // without a slash at its end
	host  string // for people
	token string
	http  *http.Client
}

// New makes a client. Nothing is sent yet. The error is a *[core.InvalidError] about the field server.
func New(c Config) (*Client, error) {
	u, err := Address(c)
	if err != nil {
		return nil, err
	}
	transport := c.Transport(connectWithin)
	host := u.Scheme + "://" + u.Host
	if c.Socket != "" {
		host = "the daemon at " + c.Socket
	}
	to := &connection{
		base: strings.TrimRight(u.String(), "/"), host: host, token: c.Token,
		// A redirect may lead to any server, and a POST would become a GET: its address is part of an error instead.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}
	return &Client{to, tasks{to}, orders{to}, rules{to}, agents{to}, state{to}}, nil
}

// OnSocket is a server of this user, by its socket.
func OnSocket(path string) Config { return Config{URL: "http://localhost", Socket: path} }

// Transport connects to the server, within a time.
func (c *Config) Transport(within time.Duration) *http.Transport {
	t := &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: within}).DialContext, ForceAttemptHTTP2: true, TLSHandshakeTimeout: within}
	if path := c.Socket; path != "" {
		t.Proxy = nil
		t.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{Timeout: within}).DialContext(ctx, "unix", path)
		}
	}
	return t
}

// Address checks where a server is, and that the token may go there: over http:// only to this machine, unless that was allowed, as everybody on
// the way could read it. The error is a *[core.InvalidError] about the field server.
func Address(c Config) (*url.URL, error) {
	invalid := func(reason string) error { return &core.InvalidError{Field: "server", Reason: reason} }
	u, err := url.Parse(c.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, invalid("must be a URL with http:// or https://")
	case u.User != nil: // it would be shown with the URL
		return nil, invalid("must have no name and no password: use a token")
	case u.RawQuery != "" || u.Fragment != "":
		return nil, invalid("must be a URL without a query and without a fragment")
	case strings.ContainsAny(c.Token, "\r\n\x00"):
		return nil, &core.InvalidError{Field: "token", Reason: "must be one line"}
	case u.Scheme == "http" && c.Token != "" && !c.InsecureHTTP && !loopback(u.Hostname()):
		return nil, invalid("must begin with https:// when a token is sent to another machine: everybody on the way can read http://")
	}
	return u, nil
}

// loopback reports whether a host is this machine without asking a name server.
func loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// Close ends the connections that are kept for later requests.
func (c *connection) Close() { c.http.CloseIdleConnections() }

// send makes a call with what it takes and the values of its path, and reads its answer.
func send[Q, A any](ctx context.Context, c *connection, op operation.Op[Q, A], request Q, path ...string) (A, error) {
	var answer A
	err := c.exchange(ctx, op.Call, request, path, func(res *http.Response) error {
		data, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
		if err != nil {
			return err
		}
		if err := json.Unmarshal(data, &answer); err != nil {
			return &Error{Code: core.CodeInternal, Detail: c.host + " answered with something that is not duly's: is it another program, or another version?"}
		}
		return nil
	})
	return answer, err
}

// exchange makes a request, and hands an answer that is no error over.
func (c *connection) exchange(ctx context.Context, call *operation.Call, sent any, path []string, read func(res *http.Response) error) error {
	within := answerWithin
	if call.Long {
		within = workWithin
	}
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	request, err := c.request(ctx, call, sent, path)
	if err != nil {
		return err
	}
	res, err := c.http.Do(request)
	if err == nil {
		defer func() { _ = res.Body.Close() }()
		if res.StatusCode < 200 || res.StatusCode > 299 {
			return c.refusal(res)
		}
		err = read(res)
	}
	known, isOurs := errors.AsType[*Error](err)
	switch {
	case err == nil:
		return nil
	case isOurs:
		return known
	case asked.Err() != nil: // the user has changed their mind
		return asked.Err()
	case ctx.Err() != nil:
		return &Error{Code: core.CodeUnavailable, Detail: fmt.Sprintf("%s has not answered within %s; the request may have been carried out", c.host, within), Away: true}
	default:
		return c.unreachable(err)
	}
}

// request makes the request of a call.
func (c *connection) request(ctx context.Context, call *operation.Call, sent any, path []string) (*http.Request, error) {
	address, err := call.Address(path...)
	if err != nil {
		return nil, err
	}
	var body io.Reader
	media := ""
	if call.InQuery() {
		if query := operation.Query(sent); len(query) > 0 {
			address += "?" + query.Encode()
		}
	} else if body, media, err = bodyOf(sent); err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, call.Method, c.base+address, body)
	if err != nil {
		return nil, err
	}
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if parent := parentOf(ctx); parent != "" && call.Submits {
		request.Header.Set("Duly-Parent", parent)
	}
	request.Header.Set("Accept", "application/json, application/problem+json, application/x-ndjson")
	return request, nil
}

// bodyOf is the body of a request, with its media type.
func bodyOf(sent any) (io.Reader, string, error) {
	switch sent := sent.(type) {
	case operation.None, operation.Empty:
		return nil, "", nil
	case io.Reader:
		return sent, "application/x-ndjson", nil
	}
	if err := operation.Check(sent); err != nil {
		return nil, "", err
	}
	data, err := json.Marshal(sent)
	return bytes.NewReader(data), "application/json", err
}
