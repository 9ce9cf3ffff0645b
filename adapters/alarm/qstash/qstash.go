package qstash

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
	"github.com/seed-6f6f2c11/duly/core"
)

// DefaultURL is where QStash is. Accounts of other regions have a URL of their own, which the console shows.
const DefaultURL = "https://qstash.upstash.io"

// Config says who publishes, and who is called.
type Config struct {
	// URL of QStash: DefaultURL if empty.
	URL string
	// Token of QStash, QSTASH_TOKEN of its console.
	Token string
	// Destination is called by POST: https://HOST/v1/run-due, which QStash has to reach.
	Destination string
	// DestinationToken is sent to it as "Authorization: Bearer ..."; nothing if empty. It needs the scope trigger alone.
	DestinationToken string
	// Client is one of the package's own if nil.
	Client *http.Client
}

// Alarm publishes messages. It is safe for concurrent use.
type Alarm struct {
	config Config
	target string // names the destination in ids
	api    apicall.API
}

// New checks the configuration, without any call. Its error is a *core.ConfigError, without the secrets.
func New(c Config) (*Alarm, error) {
	c.URL = strings.TrimSuffix(cmp.Or(c.URL, DefaultURL), "/")
	if err := apicall.CheckURL("URL", c.URL, false); err != nil {
		return nil, err
	}
	if err := apicall.CheckURL("Destination", c.Destination, false); err != nil {
		return nil, err
	}
	if c.Token == "" {
		return nil, &core.ConfigError{Field: "Token", Reason: "must be QSTASH_TOKEN of the console"}
	}
	// An account may call several hosts, of which each needs its own message.
	target := sha256.Sum256([]byte(c.Destination))
	return &Alarm{config: c, target: hex.EncodeToString(target[:6]), api: apicall.API{
		Name: "QStash", Client: c.Client, Hidden: []string{c.Token, c.DestinationToken}, Reason: reason,
		Todo: map[int]string{
			http.StatusUnauthorized: "check the token, and that the URL is that of its region",
			http.StatusForbidden:    "check the token's rights",
			http.StatusNotFound:     "check the URL of QStash",
		},
	}}, nil
}

// Set publishes a message that is delivered at a time. The same time again is no second message: QStash knows it by its id for ten minutes, in
// which a repeat comes.
func (a *Alarm) Set(ctx context.Context, at time.Time) error {
	unix := strconv.FormatInt(at.Unix(), 10)
	_, err := a.api.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.config.URL+"/v2/publish/"+a.config.Destination, strings.NewReader(`{"all":true,"alarm_at":"`+at.UTC().Format(time.RFC3339)+`"}`))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Authorization", "Bearer "+a.config.Token)
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Upstash-Not-Before", unix)
		r.Header.Set("Upstash-Deduplication-Id", "duly-"+a.target+"-"+unix)
		if a.config.DestinationToken != "" {
			r.Header.Set("Upstash-Forward-Authorization", "Bearer "+a.config.DestinationToken)
		}
		return r, nil
	})
	return err
}

// reason is what an answer says.
func reason(body []byte) string {
	var said struct{ Error string }
	if json.Unmarshal(body, &said) == nil && said.Error != "" {
		return said.Error
	}
	return string(body)
}
