package webhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

// Config says where a webhook is and how it is called.
type Config struct {
	// URL is where tasks are posted: https, or http if Insecure allows it. Errors never show it, as it may hold a secret.
	URL string
	// Secret signs the messages: "whsec_" and the base64 of 24 to 64 bytes, as Standard Webhooks have it; the prefix may be
	// left out. Messages are not signed if it is empty.
	Secret string
	// Headers are sent with each message: names, and values that may be secret. Names that duly uses itself are refused: see CheckHeader.
	// Errors of answers show no value of eight bytes and more.
	Headers map[string]string
	// Bearer is a token that is sent as Authorization: Bearer; none if empty.
	Bearer string
	// Identity proves which host sends the messages, in the same header; nothing does if it is nil.
	Identity Identity
	// AllowPrivate lets addresses be called that are not public, those of this machine included.
	AllowPrivate bool
	// AllowLoopback lets URL name this machine, as localhost or by its address, by http as well.
	AllowLoopback bool
	// Insecure allows http, by which others on the way can read what is sent.
	Insecure bool
	// Dialect says what is posted in place of the task, for a server that knows nothing of duly; the task itself is posted if it is nil.
	Dialect Dialect
	// Once does not post again what may have arrived: an attempt that was sent and not answered, or answered with a 5xx other than 503, is the last one
	// of its occurrence. It is for servers that cannot tell a repeated message. A run whose process dies is still repeated.
	Once bool
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// valuePrefix begins the names of the headers that hold the values of bindings: no value can pass for a header of HTTP, or of the
// signature, which does not cover them.
const valuePrefix = "Duly-Value-"

// parentHeader names the run, for a server that submits tasks in its name: it sends the header along with them.
const parentHeader = "Duly-Parent"

// Handler posts tasks to a URL. Its Run is a handler for [core.Handle].
// It is safe for concurrent use, and keeps connections between runs.
type Handler struct {
	url      string
	key      []byte
	header   http.Header // of the configuration
	identity Identity
	dialect  Dialect
	once     bool
	clock    core.Clock
	client   *http.Client
}

// New checks the configuration, without any call. Its error is a *[core.ConfigError], which shows neither the URL nor a secret.
func New(c Config) (*Handler, error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, &core.ConfigError{Field: "URL", Reason: "must be an http or https URL"}
	}
	here := c.AllowLoopback && loopback(u.Hostname())
	if u.Scheme == "http" && !c.Insecure && !here {
		return nil, &core.ConfigError{Field: "Insecure", Reason: fmt.Sprintf(
			"must be set for http: what is sent to %s could be read on the way", u.Hostname())}
	}
	key, err := signingKey(c.Secret)
	if err != nil {
		return nil, err
	}
	header, err := c.headers(u)
	if err != nil {
		return nil, err
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	return &Handler{url: c.URL, key: key, header: header, identity: c.Identity, dialect: c.Dialect, once: c.Once, clock: c.Clock, client: &http.Client{
		Transport: guard{private: c.AllowPrivate, loopback: here}.transport(),
		// A redirect could lead where the configuration does not say, and would take the headers along.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// loopback reports whether a host is this machine, by its name alone.
// Other names are not looked up: the guard looks at the address when it is dialled.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// Run posts one task and waits for the answer, as long as ctx and the timeout of the task's kind allow.
func (h *Handler) Run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	path, body, err := h.said(t)
	if err != nil {
		return err
	}
	ctx, sent := watch(ctx)
	r, err := h.request(ctx, t.RunInfo, contract.MessageID(t.RunInfo), body)
	if err != nil {
		return err
	}
	if path != "" {
		r.URL.Path = cmp.Or(r.URL.Path, "/") // else what is joined is no absolute path
		r.URL = r.URL.JoinPath(path)
	}
	// A byte more than a result may have, so that Keep can tell.
	said, err := h.post(r, body, h.most(t.RunInfo))
	switch {
	case err != nil && h.once && sent.Load():
		return core.SkipRetry(fmt.Errorf("%w: it may have arrived, and is not sent again", err))
	case err != nil:
		return err
	}
	return h.outcome(t.RunInfo, said)
}

// request is the signed message about a run.
func (h *Handler) request(ctx context.Context, t *core.RunInfo, id string, body []byte) (*http.Request, error) {
	r, err := h.message(ctx, t.Bound(), id, body)
	if err == nil && t.Traceparent != "" {
		r.Header.Set("Traceparent", t.Traceparent)
	}
	return r, err
}

// message is a signed message, with the values of bindings.
func (h *Handler) message(ctx context.Context, values core.Values, id string, body []byte) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return nil, core.SkipRetry(errors.New("webhook: the URL is not usable"))
	}
	r.Header = h.header.Clone()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "duly")
	if parent := core.ParentOf(ctx); parent != "" {
		r.Header.Set(parentHeader, parent)
	}
	for name, value := range values {
		r.Header.Set(valuePrefix+strings.ReplaceAll(name, "_", "-"), value)
	}
	// Each attempt has its own time, while the id stays.
	standardwebhooks.Sign(r.Header, h.key, id, h.clock.Now(), body)
	return r, nil
}

// post sends a message with what proves its sender, which comes last as it may sign the rest, and reads the beginning of its answer.
func (h *Handler) post(r *http.Request, body []byte, most int) (*contract.Reply, error) {
	if h.identity != nil {
		if err := h.identity.Prove(r, body); err != nil {
			return nil, fmt.Errorf("webhook: %w", err)
		}
	}
	said, err := ask(h.client, r, most)
	if err == nil {
		said.Hidden = h.hidden(r.Header)
	}
	return said, err
}

// ask sends a request and reads the beginning of its answer.
func ask(client *http.Client, r *http.Request, most int) (*contract.Reply, error) {
	res, err := client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may hold a secret
		}
		return nil, fmt.Errorf("webhook: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, int64(most)))
	if err != nil && res.StatusCode < http.StatusMultipleChoices {
		return nil, fmt.Errorf("webhook: read the answer: %w", err)
	}
	return &contract.Reply{From: "webhook", Status: res.StatusCode, Header: res.Header, Body: body}, nil
}
