package cloudtasks

// Access tokens: one request to the metadata server, which every program on Google Cloud can reach. golang.org/x/oauth2/google would read key files too, and
// is larger than all of this package.

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/apicall"
	"github.com/seed-6f6f2c11/duly/core"
)

// defaultMetadataHost resolves on Google Cloud alone.
const defaultMetadataHost = "metadata.google.internal"

// spare is how long before its end a token is no longer used.
const spare = time.Minute

// metadata reads the tokens of the account that the program runs as.
type metadata struct {
	host   string
	clock  core.Clock
	client *http.Client

	mu      sync.Mutex
	current string
	until   time.Time
}

// token is an access token that is good for a minute at least.
func (m *metadata) token(ctx context.Context, renew bool) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !renew && m.current != "" && m.clock.Now().Before(m.until) {
		return m.current, nil
	}
	api := apicall.API{Name: "the metadata server", Client: m.client, Clock: m.clock, Todo: map[int]string{
		http.StatusNotFound: "give the service an account",
	}}
	if m.client == nil {
		api.Client = apicall.NewClient()
		api.Client.Transport = &http.Transport{DisableKeepAlives: true} // by no proxy, which would get the token
	}
	data, err := api.Do(ctx, func(ctx context.Context) (*http.Request, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.host+"/computeMetadata/v1/instance/service-accounts/default/token", http.NoBody)
		if err == nil {
			r.Header.Set("Metadata-Flavor", "Google")
		}
		return r, err
	})
	if err != nil {
		return "", err
	}
	var got struct {
		Token   string `json:"access_token"`
		Expires int    `json:"expires_in"` // seconds
	}
	if json.Unmarshal(data, &got) != nil || got.Token == "" { // its error could quote the token
		return "", errors.New("the metadata server gave no access token")
	}
	m.current, m.until = got.Token, m.clock.Now().Add(time.Duration(got.Expires)*time.Second-spare)
	return m.current, nil
}
