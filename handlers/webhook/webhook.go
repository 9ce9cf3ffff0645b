package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/handlers/internal/contract"
)

// Config says where a webhook is and how it is called.
type Config struct {
	// URL is where tasks are posted: https, or http if Insecure allows it. Errors never show it, as it may hold a secret.
	URL string
	// Secret signs the messages: "whsec_" and the base64 of 24 to 64 bytes, as Standard Webhooks have it; the prefix may be
	// left out. Messages are not signed if it is empty.
	Secret string
	// AllowPrivate lets addresses be called that are not public, those of this machine included.
	AllowPrivate bool
	// AllowLoopback lets URL name this machine, as localhost or by its address, by http as well.
	AllowLoopback bool
	// Insecure allows http, by which others on the way can read what is sent.
	Insecure bool
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// Handler posts tasks to a URL. Its Run is a handler for [core.Handle].
// It is safe for concurrent use, and keeps connections between runs.
type Handler struct {
	url    string
	key    []byte
	clock  core.Clock
	client *http.Client
}

// New checks the configuration, calling nobody. Its error is a *[core.ConfigError], which shows neither the URL nor the secret.
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
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	return &Handler{url: c.URL, key: key, clock: c.Clock, client: &http.Client{
		Transport: guard{private: c.AllowPrivate, loopback: here}.transport(),
		// A redirect could lead where the configuration does not say.
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
	body, err := contract.Encode(t)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("webhook: encode the task: %w", err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err != nil {
		return core.SkipRetry(errors.New("webhook: the URL is not usable"))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "duly")
	if t.Traceparent != "" {
		r.Header.Set("Traceparent", t.Traceparent)
	}
	// The time is that of each attempt, while the id stays.
	sign(r.Header, h.key, messageID(t.RunInfo), h.clock.Now(), body)
	res, err := h.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may hold a secret
		}
		return fmt.Errorf("webhook: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	// A byte more than a result may have, so that Keep can tell.
	answer, err := io.ReadAll(io.LimitReader(res.Body, int64(t.MaxResult())+1))
	if err != nil && res.StatusCode < http.StatusMultipleChoices {
		return fmt.Errorf("webhook: read the answer: %w", err)
	}
	return outcome(t.RunInfo, res, answer, h.clock.Now())
}
