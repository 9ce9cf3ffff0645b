// Package cloudrun proves to a private service of Google Cloud Run who calls it, by Google's library: with a token of OpenID Connect of the account of the machine, of
// the file that GOOGLE_APPLICATION_CREDENTIALS names, or of workload identity federation. So a webhook reaches it from anywhere.
package cloudrun

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/oauth2"
	"google.golang.org/api/idtoken"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Identity is an Identity of package webhook. It is safe for concurrent use, and uses a token until it is about to end.
type Identity struct {
	audience string

	mu     sync.Mutex
	source oauth2.TokenSource // made by the first call: looking for credentials may call a server
}

// New is the identity for an audience: the URL of a service, without a path, or one of its custom audiences.
func New(audience string) (*Identity, error) {
	if strings.TrimSpace(audience) == "" {
		return nil, &core.ConfigError{Field: "To", Reason: "must be the audience of a service, such as https://digest-abc.a.run.app"}
	}
	return &Identity{audience: audience}, nil
}

// Target is the identity as duly.yaml has it.
func Target() contract.Target {
	return contract.Target{Name: "cloud_run", Prove: func(c contract.TargetConfig) (contract.Prover, error) { return New(c.To) }}
}

// Prove adds a token to a request. It ends with the context of the request.
func (i *Identity) Prove(r *http.Request, _ []byte) error {
	type answer struct {
		token *oauth2.Token
		err   error
	}
	ctx := r.Context()
	came := make(chan answer, 1)
	go func() {
		token, err := i.token(context.WithoutCancel(ctx))
		came <- answer{token, err}
	}()
	select {
	case a := <-came:
		if a.err != nil {
			return fmt.Errorf("identity: %w", a.err)
		}
		r.Header.Set("Authorization", "Bearer "+a.token.AccessToken)
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// token is one that is good for a while. Calls wait for one another, so that one of them asks.
func (i *Identity) token(ctx context.Context) (*oauth2.Token, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.source == nil {
		source, err := idtoken.NewTokenSource(ctx, i.audience)
		if err != nil {
			return nil, err
		}
		i.source = source
	}
	return i.source.Token()
}
