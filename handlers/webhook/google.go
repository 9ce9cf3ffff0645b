package webhook

// The identity of a program on Google Cloud: an OIDC token of the account that it runs as, from the metadata server. golang.org/x/oauth2 would be
// larger than all of this package.

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

const (
	metadataHost = "metadata.google.internal" // resolves on Google Cloud alone
	identityPath = "/computeMetadata/v1/instance/service-accounts/default/identity"
	identityIn   = 5 * time.Second // how long the metadata server has to answer
	mostIdentity = 16 << 10        // bytes of a token
	spareTime    = time.Minute     // how long before its end a token is no longer sent
)

// GoogleConfig says for whom tokens are made.
type GoogleConfig struct {
	// Audience is the server that a token is for: of a private service on Cloud Run its URL, without a path.
	Audience string
	// MetadataHost is the host of the metadata server, with its port if that is not 80: Google Cloud's if empty. Google's own libraries
	// take it from GCE_METADATA_HOST.
	MetadataHost string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// GoogleIdentity is an [Identity]: each message has a token of the account that the program runs as, in the header Authorization. A token is
// used until a minute before its end. It is safe for concurrent use.
type GoogleIdentity struct {
	url    string
	clock  core.Clock
	client *http.Client

	mu      sync.Mutex
	current string
	until   time.Time
	asking  *question // nil while no run asks
}

// question is one request to the metadata server, for which all wait who need its answer.
type question struct {
	done  chan struct{}
	token string
	err   error
}

// NewGoogleIdentity checks the configuration, without any call. Its error is a *[core.ConfigError].
func NewGoogleIdentity(c GoogleConfig) (*GoogleIdentity, error) {
	host := cmp.Or(c.MetadataHost, metadataHost)
	if u, err := url.Parse("http://" + host); err != nil || u.Host != host {
		return nil, &core.ConfigError{Field: "MetadataHost", Value: c.MetadataHost, Reason: "must be a host, or a host and a port"}
	}
	if strings.TrimSpace(c.Audience) == "" {
		return nil, &core.ConfigError{Field: "Audience", Reason: "must be the server that tokens are for, such as https://digest-abc.a.run.app"}
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	return &GoogleIdentity{
		url: "http://" + host + identityPath + "?" + url.Values{"audience": {c.Audience}, "format": {"full"}}.Encode(), clock: c.Clock,
		client: &http.Client{
			// No proxy, which would get the token, and no connection that a frozen host would keep.
			Transport:     &http.Transport{DisableKeepAlives: true},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// Prove adds a token to a message.
func (g *GoogleIdentity) Prove(r *http.Request, _ []byte) error {
	token, err := g.token(r.Context())
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	r.Header.Set(authorization, bearer+token)
	return nil
}

// token is one that is good for a minute at least. Runs that start together ask once.
func (g *GoogleIdentity) token(ctx context.Context) (string, error) {
	g.mu.Lock()
	if g.current != "" && g.clock.Now().Before(g.until) {
		defer g.mu.Unlock()
		return g.current, nil
	}
	q := g.asking
	if q == nil {
		q = &question{done: make(chan struct{})}
		g.asking = q
		// With a time of its own: the end of the first run must not end the request of the others.
		go g.answer(context.WithoutCancel(ctx), q)
	}
	g.mu.Unlock()
	select {
	case <-q.done:
		return q.token, q.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// answer asks the metadata server for all who wait.
func (g *GoogleIdentity) answer(ctx context.Context, q *question) {
	ctx, cancel := context.WithTimeout(ctx, identityIn)
	defer cancel()
	var until time.Time
	q.token, q.err = g.ask(ctx)
	if q.err == nil {
		until, q.err = expiry(q.token)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if q.err == nil {
		g.current, g.until = q.token, until.Add(-spareTime)
	}
	g.asking = nil
	close(q.done)
}

// ask asks the metadata server for a token.
func (g *GoogleIdentity) ask(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url, http.NoBody)
	if err != nil {
		return "", err
	}
	r.Header.Set("Metadata-Flavor", "Google") // without it the server refuses: no browser or careless proxy sends it
	res, err := g.client.Do(r)
	if err != nil {
		if failed, ok := errors.AsType[*url.Error](err); ok {
			err = failed.Err
		}
		return "", fmt.Errorf("the metadata server does not answer, as it does on Google Cloud alone: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	switch body, err := io.ReadAll(io.LimitReader(res.Body, mostIdentity)); {
	case res.StatusCode == http.StatusNotFound:
		return "", errors.New("the metadata server answered 404: give the service an account")
	case res.StatusCode != http.StatusOK:
		return "", fmt.Errorf("the metadata server answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
	case err != nil:
		return "", fmt.Errorf("read the answer of the metadata server: %w", err)
	default:
		return strings.TrimSpace(string(body)), nil
	}
}

// expiry is when a token ends. Only its receiver has to verify it. Errors do not quote it.
func expiry(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	var claims struct {
		Expires int64 `json:"exp"` // in seconds
	}
	if len(parts) == 3 {
		payload, err := base64.RawURLEncoding.DecodeString(parts[1])
		if err == nil && CheckHeader(authorization, token) == nil && json.Unmarshal(payload, &claims) == nil && claims.Expires > 0 {
			return time.Unix(claims.Expires, 0), nil
		}
	}
	return time.Time{}, errors.New("the metadata server gave no identity token")
}
