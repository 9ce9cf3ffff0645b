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
	"unicode/utf8"

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
	// InsecureHTTP allows to send the token over http:// to another machine.
	InsecureHTTP bool
}

// Client calls one server. Make it with [New], and close it. It may be used by several goroutines.
type Client struct {
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
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: connectWithin}).DialContext, ForceAttemptHTTP2: true,
		TLSHandshakeTimeout: connectWithin,
	}
	return &Client{
		base: strings.TrimRight(u.String(), "/"), host: u.Scheme + "://" + u.Host, token: c.Token,
		// A redirect may lead to any server, and a POST would become a GET: its address is part of an error instead.
		http: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
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
func (c *Client) Close() { c.http.CloseIdleConnections() }

// call is one request.
type call struct {
	method string
	path   []string // its segments after /v1, unescaped
	query  url.Values
	body   any // JSON, unless it is an io.Reader: then lines of it
	within time.Duration
	parent string // the run in whose name it is made
}

// get asks a question, and reads the answer into a value of a type.
func get[V any](ctx context.Context, c *Client, query url.Values, path ...string) (V, error) {
	return send[V](ctx, c, &call{method: http.MethodGet, path: path, query: query})
}

// post gives an order, and reads the answer.
func post[V any](ctx context.Context, c *Client, body any, path ...string) (V, error) {
	return send[V](ctx, c, &call{method: http.MethodPost, path: path, body: body})
}

// send makes a request and reads its answer.
func send[V any](ctx context.Context, c *Client, r *call) (V, error) {
	var answer V
	err := c.exchange(ctx, r, func(res *http.Response) error {
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
func (c *Client) exchange(ctx context.Context, r *call, read func(res *http.Response) error) error {
	if r.within == 0 {
		r.within = answerWithin
	}
	asked := ctx
	ctx, cancel := context.WithTimeout(ctx, r.within)
	defer cancel()
	request, err := c.request(ctx, r)
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
		return &Error{Code: core.CodeUnavailable, Detail: fmt.Sprintf("%s has not answered within %s; the request may have been carried out", c.host, r.within), Away: true}
	default:
		return c.unreachable(err)
	}
}

// request makes the request of a call.
func (c *Client) request(ctx context.Context, r *call) (*http.Request, error) {
	address := strings.Builder{}
	address.WriteString(c.base + "/v1")
	for _, segment := range r.path {
		if segment == "" {
			return nil, &core.InvalidError{Field: "agent_id", Reason: "and id are required"}
		}
		address.WriteString("/" + escape(segment))
	}
	if len(r.query) > 0 {
		address.WriteString("?" + r.query.Encode())
	}
	body, media, err := bodyOf(r.body)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, r.method, address.String(), body)
	if err != nil {
		return nil, err
	}
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.parent != "" {
		request.Header.Set("Duly-Parent", r.parent)
	}
	request.Header.Set("Accept", "application/json, application/problem+json, application/x-ndjson")
	return request, nil
}

// escape makes a segment of a path. One that is a dot or two would be taken for a direction.
func escape(segment string) string {
	if strings.Trim(segment, ".") == "" {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

// fields are the members of a JSON object that have a value: servers refuse those that have none.
type fields map[string]any

// with adds a string, unless it is empty.
func (f fields) with(name, text string) fields {
	if text != "" {
		f[name] = text
	}
	return f
}

// mark adds what is true.
func (f fields) mark(name string, is bool) fields {
	if is {
		f[name] = true
	}
	return f
}

// bodyOf is the body of a request, with its media type.
func bodyOf(body any) (io.Reader, string, error) {
	switch body := body.(type) {
	case nil:
		return nil, "", nil
	case io.Reader:
		return body, "application/x-ndjson", nil
	case fields:
		for name, value := range body { // JSON would change it in silence
			if text, ok := value.(string); ok && !utf8.ValidString(text) {
				return nil, "", &core.InvalidError{Field: name, Reason: "is not valid UTF-8"}
			}
		}
	}
	data, err := json.Marshal(body)
	if err != nil {
		return nil, "", err
	}
	return bytes.NewReader(data), "application/json", nil
}
