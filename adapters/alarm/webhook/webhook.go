package webhook

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

// Config says who is asked.
type Config struct {
	// URL is where times are posted: https, or http on this machine, or anywhere if Insecure allows it. Errors never show it, as it may
	// hold a secret.
	URL string
	// Secret signs the messages: "whsec_" and the base64 of 24 to 64 bytes. They are not signed if it is empty.
	Secret string
	// Insecure allows http, by which others on the way can read when something is due.
	Insecure bool
	// Client is one of the package's own if nil, and Clock core.SystemClock.
	Client *http.Client
	Clock  core.Clock
}

// Alarm asks a server to call back. It is safe for concurrent use.
type Alarm struct {
	url   string
	key   []byte
	clock core.Clock
	api   apicall.API
}

// New checks the configuration, without any call. Its error is a *core.ConfigError, which shows neither the URL nor the secret.
func New(c Config) (*Alarm, error) {
	if err := apicall.CheckURL("URL", c.URL, c.Insecure); err != nil {
		return nil, err
	}
	key, err := standardwebhooks.Key(c.Secret)
	if err != nil {
		return nil, &core.ConfigError{Field: "Secret", Reason: err.Error()}
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	a := &Alarm{url: c.URL, key: key, clock: c.Clock, api: apicall.API{
		Name: "the alarm's webhook", Client: c.Client, Clock: c.Clock, Hidden: hidden(c.URL, c.Secret),
		Todo: map[int]string{
			http.StatusUnauthorized: "check that its secret is that of the alarm",
			http.StatusForbidden:    "check that its secret is that of the alarm",
			http.StatusNotFound:     "check its URL",
		},
	}}
	return a, nil
}

// hidden are the parts of a URL that may be a secret, and the one that signs.
func hidden(link, secret string) []string {
	out := []string{secret}
	if u, err := url.Parse(link); err == nil {
		password, _ := u.User.Password()
		out = append(out, u.RawQuery, password)
		for _, values := range u.Query() {
			out = append(out, values...)
		}
	}
	return out
}

// Set asks for a call at a time.
func (a *Alarm) Set(ctx context.Context, at time.Time) error {
	body := []byte(`{"at":"` + at.UTC().Format(time.RFC3339) + `"}`)
	_, err := a.api.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("User-Agent", "duly")
		standardwebhooks.Sign(r.Header, a.key, "alarm_"+strconv.FormatInt(at.Unix(), 10), a.clock.Now(), body)
		return r, nil
	})
	return err
}
