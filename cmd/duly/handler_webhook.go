package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// webhookConfig says where a webhook is and how it is called.
type webhookConfig struct {
	url          string
	secretEnv    string
	secret       string
	insecure     bool
	allowPrivate bool
}

// Bounds of a webhook.
const (
	webhookTimeout  = 30 * time.Second // if the file sets none
	mostRetryAfter  = 24 * time.Hour
	mostErrorAnswer = 300 // bytes of an answer that go into the error
)

func (h *handlerConfig) readWebhook(p place) error {
	w := &h.webhook
	if err := text(&w.url)(p); err != nil {
		return err
	}
	u, err := url.Parse(w.url)
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return p.fail("must be an http or https URL")
	case u.Scheme == "http" && !w.insecure && !loopback(u.Hostname()):
		return p.fail("must be https: what is sent to %s could be read on the way; insecure: true allows it", u.Hostname())
	}
	h.settings.Timeout = cmp.Or(h.settings.Timeout, webhookTimeout)
	if w.secretEnv != "" {
		if w.secret = os.Getenv(w.secretEnv); w.secret == "" {
			return p.fail("the environment variable %s, named by secret_env, is not set", w.secretEnv)
		}
		if _, err := signingKey(w.secret); err != nil {
			return p.fail("the environment variable %s, named by secret_env: %w", w.secretEnv, err)
		}
	}
	return nil
}

// loopback reports whether a host is this machine, by its name alone.
func loopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// webhook posts each task to a URL, as Standard Webhooks describe it.
type webhook struct {
	config webhookConfig
	client *http.Client
}

func newWebhook(c webhookConfig) *webhook {
	host := ""
	if u, err := url.Parse(c.url); err == nil {
		host = u.Hostname()
	}
	guard := dialGuard{private: c.allowPrivate, loopback: c.allowPrivate || loopback(host)}
	return &webhook{config: c, client: &http.Client{
		Transport: guard.transport(),
		// A redirect could lead where the file does not say.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *webhook) run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	body, err := encodeRun(t)
	if err != nil {
		return fmt.Errorf("encode task: %w", err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.config.url, bytes.NewReader(body))
	if err != nil {
		return core.SkipRetry(errors.New("the URL of the webhook is not usable"))
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "duly")
	if t.Traceparent != "" {
		r.Header.Set("Traceparent", t.Traceparent)
	}
	if err := sign(r.Header, w.config.secret, messageID(t.RunInfo), time.Now(), body); err != nil {
		return core.SkipRetry(err)
	}
	res, err := w.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err // without the URL, which may hold a secret
		}
		return fmt.Errorf("webhook: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, mostResultJSON+1))
	if err != nil && res.StatusCode < http.StatusMultipleChoices {
		return fmt.Errorf("webhook: read answer: %w", err)
	}
	return outcomeOf(t.RunInfo, res, answer, time.Now())
}

// messageID names an occurrence of a task: the receiver can tell by it that a message is repeated.
func messageID(t *core.RunInfo) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d:%s%d:%s%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Occurrence)
	return "msg_" + hex.EncodeToString(h.Sum(nil)[:16])
}

// outcomeOf turns an answer into the outcome of the run.
func outcomeOf(t *core.RunInfo, res *http.Response, answer []byte, now time.Time) error {
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		if !json.Valid(answer) || len(answer) > mostResultJSON {
			return nil
		}
		return keepResult(t, answer)
	}
	err := fmt.Errorf("webhook: %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	if said := strings.TrimSpace(string(answer[:min(len(answer), mostErrorAnswer)])); said != "" {
		err = fmt.Errorf("%w: %s", err, strings.ToValidUTF8(said, "\uFFFD"))
	}
	switch {
	case res.StatusCode == http.StatusTooManyRequests || res.StatusCode == http.StatusServiceUnavailable:
		if at, ok := retryAfter(res.Header.Get("Retry-After"), now); ok {
			return core.RetryAfter(at, err)
		}
		return err
	case res.StatusCode == http.StatusGone:
		return core.Cancel(err)
	case res.StatusCode >= 400 && res.StatusCode < 500:
		return core.SkipRetry(err)
	default:
		return err
	}
}

// retryAfter reads a Retry-After header: seconds or a date.
func retryAfter(value string, now time.Time) (time.Time, bool) {
	latest := now.Add(mostRetryAfter)
	if seconds, err := strconv.ParseUint(value, 10, 32); err == nil {
		at := now.Add(time.Duration(seconds) * time.Second)
		if at.After(latest) {
			at = latest
		}
		return at, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return time.Time{}, false
	}
	if at.After(latest) {
		at = latest
	}
	return at, true
}
