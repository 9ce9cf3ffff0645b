package webhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

// CallbacksConfig says which URLs may receive callbacks about ended tasks, and how messages are signed.
type CallbacksConfig struct {
	// Allow are the beginnings of the URLs that may be called, each with a scheme, a host and a path: https://hooks.example.com/ allows all
	// of that host, https://hooks.example.com/duly/ what is below a folder. http is for this machine alone, by its own name or address.
	Allow []string
	// Secret signs the messages, as Config.Secret does.
	Secret string
	// AllowPrivate lets hosts be called whose addresses are not public. A beginning that names this machine allows that machine by itself.
	AllowPrivate bool
	// Structured posts each message as a whole event of CloudEvents, in structured mode; in binary mode, with its attributes in headers, if false.
	Structured bool
	// Forms are other forms of messages, by their names. A URL asks for one by a fragment that begins with its name, as in https://hooks.example.com/x#a2a=1.0;
	// the fragment is part of no request.
	Forms map[string]CallbackForm
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// CallbackForm writes messages as the API of another runtime has them. It is used by many goroutines at once.
type CallbackForm interface {
	// Write makes of a message, which is JSON, what is posted: its media type, its body, and headers of its own. said is what the fragment of the URL says.
	Write(said url.Values, message []byte) (media string, header http.Header, body []byte, err error)
}

// Callbacks tells URLs how tasks have ended: it is a [core.Callbacks]. It posts each message, signed as Standard Webhooks describe it, with a
// Webhook-Id that stays the same for all attempts; follows no redirects; and uses no proxy. An answer of 2xx takes the message, and 410
// refuses it for good. Any other is tried again, after its Retry-After if it has one; a redirect is not, as it would end nowhere else.
// It is safe for concurrent use.
type Callbacks struct {
	allow []*url.URL
	texts string // those, for people
	key   []byte
	clock core.Clock
	http  http.Client // for hosts elsewhere
	here  http.Client // for this machine

	structured bool
	forms      map[string]CallbackForm
}

// NewCallbacks checks the configuration, without any call. Its error is a *[core.ConfigError].
func NewCallbacks(c CallbacksConfig) (*Callbacks, error) {
	if len(c.Allow) == 0 {
		return nil, &core.ConfigError{Field: "Allow", Reason: "must name at least one beginning of URLs, such as https://hooks.example.com/"}
	}
	b := &Callbacks{clock: c.Clock, structured: c.Structured, forms: c.Forms, texts: strings.Join(c.Allow, ", ")}
	for i, text := range c.Allow {
		u, err := plainURL(text)
		switch {
		case err == nil && u.RawQuery != "":
			err = errors.New("must have no query")
		case err == nil && (u.Path == "" || u.Scheme == "http" && !loopback(u.Hostname())):
			err = errors.New("must be https and go up to a slash behind the host at least, such as https://hooks.example.com/; http is for localhost and 127.0.0.1")
		}
		if err != nil {
			return nil, &core.ConfigError{Field: fmt.Sprintf("Allow[%d]", i), Value: text, Reason: err.Error()}
		}
		b.allow = append(b.allow, u)
	}
	var err error
	if b.key, err = signingKey(c.Secret); err != nil {
		return nil, err
	}
	if b.clock == nil {
		b.clock = core.SystemClock{}
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	b.http = http.Client{Transport: guard{private: c.AllowPrivate}.transport(), CheckRedirect: stay}
	b.here = http.Client{Transport: guard{private: c.AllowPrivate, loopback: true}.transport(), CheckRedirect: stay}
	return b, nil
}

// plainURL reads a URL in the one form in which its beginning says where it leads: a server would read a path with dots or a backslash
// as another path, and the text before an @ is no host.
func plainURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Opaque != "" || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("must be an https URL")
	case u.User != nil || u.Fragment != "" || strings.ContainsAny(text, "\\#"):
		return nil, errors.New("must have no user, fragment or backslash")
	// guard: callback-path
	case slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }):
		return nil, errors.New("must have no . or .. in its path")
	}
	u.Host = strings.ToLower(u.Host)
	return u, nil
}

// Check is nil if a URL begins as one of those that are allowed. Its error does not show the URL.
func (b *Callbacks) Check(text string) error {
	text, _, _, err := b.formOf(text)
	if err != nil {
		return err
	}
	u, err := plainURL(text)
	if err != nil {
		return err
	}
	for _, a := range b.allow {
		if u.Scheme == a.Scheme && u.Host == a.Host && strings.HasPrefix(u.EscapedPath(), a.EscapedPath()) {
			return nil
		}
	}
	return fmt.Errorf("must begin with a URL that is allowed here: %s", b.texts)
}

// formOf takes the fragment off a URL, with the form that it asks for; nil for a URL without one.
func (b *Callbacks) formOf(text string) (plain string, form CallbackForm, said url.Values, err error) {
	plain, fragment, has := strings.Cut(text, "#")
	if !has {
		return text, nil, nil, nil
	}
	name, _, _ := strings.Cut(fragment, "=")
	said, err = url.ParseQuery(fragment)
	if form = b.forms[name]; form == nil || err != nil {
		return "", nil, nil, errors.New("must have no fragment, unless that names a form of messages that is enabled here")
	}
	return plain, form, said, nil
}

// Deliver posts one message and waits for the answer, until ctx is done.
func (b *Callbacks) Deliver(ctx context.Context, to, id string, message []byte) error {
	to, form, said, err := b.formOf(to)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("callback: the URL %w", err))
	}
	media, header, message, err := b.written(form, said, id, message)
	if err != nil {
		return core.SkipRetry(fmt.Errorf("callback: the message cannot be written: %w", err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(message))
	if err != nil {
		return core.SkipRetry(errors.New("callback: the URL is not usable"))
	}
	maps.Copy(r.Header, header)
	r.Header.Set("Content-Type", media)
	r.Header.Set("User-Agent", "duly")
	standardwebhooks.Sign(r.Header, b.key, id, b.clock.Now(), message)
	client := &b.http
	if loopback(r.URL.Hostname()) {
		client = &b.here
	}
	answer, err := ask(client, r, contract.MostErrorAnswer)
	if err != nil {
		return err
	}
	return taken(answer, b.clock.Now())
}

// written is a message in a form, or as it is with the attributes of an event; it is the whole event in structured mode.
func (b *Callbacks) written(form CallbackForm, said url.Values, id string, message []byte) (media string, header http.Header, body []byte, err error) {
	if form != nil {
		return form.Write(said, message)
	}
	e, is := eventOf(id, message)
	switch {
	case is && b.structured:
		whole, err := json.Marshal(e)
		return "application/cloudevents+json", nil, whole, err
	case is:
		header = http.Header{}
		binary(header, &e)
	}
	return "application/json", header, message, nil
}

// taken is what an answer means for a delivery.
func taken(said *contract.Reply, now time.Time) error {
	if said.OK() {
		return nil
	}
	err := said.Err()
	switch {
	case said.Status == http.StatusGone:
		return core.Cancel(err)
	case said.Status < 400:
		return core.SkipRetry(fmt.Errorf("%w: redirects are not followed", err))
	}
	if at, ok := contract.RetryAfter(said.Header.Get("Retry-After"), now); ok {
		return core.RetryAfter(at, err)
	}
	return err
}
