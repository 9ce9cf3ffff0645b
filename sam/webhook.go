package main

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

// webhook posts the tasks of a kind to a URL, with the headers of Standard Webhooks. 2xx is success and a JSON answer its
// result, 410 cancels the task, another 4xx but 408 and 429 fails it for good, and everything else is tried again.
type webhook struct {
	url    string
	key    []byte // nil: unsigned
	client *http.Client
}

// webhooks registers a webhook for each kind of DULY_WEBHOOKS, as in {"digest": "https://agents.example/digest"}.
func webhooks(s *core.Scheduler, get func(string) string) error {
	var urls map[string]string
	if text := get("DULY_WEBHOOKS"); text != "" && json.Unmarshal([]byte(text), &urls) != nil {
		return errors.New(`DULY_WEBHOOKS must be JSON such as {"digest": "https://agents.example/digest"}`)
	}
	private, err := flag(get, "DULY_WEBHOOKS_ALLOW_PRIVATE")
	if err != nil {
		return err
	}
	key := []byte(get("DULY_WEBHOOK_SECRET"))
	if encoded, ok := bytes.CutPrefix(key, []byte("whsec_")); ok {
		if key, err = base64.StdEncoding.DecodeString(string(encoded)); err != nil {
			return errors.New("DULY_WEBHOOK_SECRET is not base64 behind whsec_")
		}
	}
	dialer := &net.Dialer{Timeout: 5 * time.Second, Control: guard(private)}
	client := &http.Client{
		Transport: &http.Transport{DialContext: dialer.DialContext, IdleConnTimeout: 10 * time.Second},
		// A redirect could lead where the settings do not say.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	for kind, to := range urls {
		if u, err := url.Parse(to); err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !private) {
			return fmt.Errorf("DULY_WEBHOOKS: the URL of %q must begin with https://", kind)
		}
		core.Handle(s, kind, (&webhook{to, key, client}).run)
	}
	return nil
}

// guard refuses to dial what is not public, after the name was resolved: this machine, the network it is in, and the
// addresses where Lambda itself listens.
func guard(private bool) func(network, address string, _ syscall.RawConn) error {
	return func(_, address string, _ syscall.RawConn) error {
		to, err := netip.ParseAddrPort(address)
		addr := to.Addr().Unmap()
		public := addr.IsGlobalUnicast() && !addr.IsPrivate() && !netip.MustParsePrefix("100.64.0.0/10").Contains(addr)
		if err != nil || !public && !private {
			return fmt.Errorf("%s is not a public address: DULY_WEBHOOKS_ALLOW_PRIVATE allows it", addr)
		}
		return nil
	}
}

func (h *webhook) run(ctx context.Context, t *core.Task[json.RawMessage]) error {
	body, err := json.Marshal(map[string]any{
		"id": t.ID, "agent_id": t.Agent, "kind": t.Kind, "payload": t.Payload, "group": t.Group, "attempt": t.Attempt,
		"fence": t.Fence, "due_at": t.Due.Time(), "trace_id": t.TraceID, "info": t.Info, "tags": t.Tags,
	})
	r, problem := http.NewRequestWithContext(ctx, http.MethodPost, h.url, bytes.NewReader(body))
	if err = errors.Join(err, problem); err != nil {
		return core.SkipRetry(err)
	}
	// The id stays when the message is repeated.
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Occurrence))
	id, at := fmt.Sprintf("msg_%x", sum[:16]), strconv.FormatInt(time.Now().Unix(), 10)
	r.Header = http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {id}, "Webhook-Timestamp": {at}}
	if len(h.key) > 0 {
		mac := hmac.New(sha256.New, h.key)
		mac.Write([]byte(id + "." + at + "." + string(body)))
		r.Header.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return h.outcome(r, t)
}

func (h *webhook) outcome(r *http.Request, t *core.Task[json.RawMessage]) error {
	res, err := h.client.Do(r)
	if err != nil {
		return fmt.Errorf("webhook: %w", errors.Unwrap(err)) // without the URL, which may hold a secret
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, core.DefaultMaxResult))
	failed := fmt.Errorf("webhook: %s", res.Status)
	switch status := res.StatusCode; {
	case status/100 == 2 && err == nil && json.Valid(answer):
		return t.SetResult(json.RawMessage(answer))
	case status/100 == 2:
		return nil
	case status == http.StatusGone:
		return core.Cancel(failed)
	case status/100 == 4 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout:
		return core.SkipRetry(failed)
	default:
		return failed
	}
}
