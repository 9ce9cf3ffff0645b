package remote

// Claims of workers that stop.

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// A server hears when a claim is left, and what it has sent by then is read where the connection has no other calls.
func TestAClaimThatIsLeft(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(s *httptest.Server){
		"plain": (*httptest.Server).Start, "TLS": (*httptest.Server).StartTLS,
		"HTTP/2": func(s *httptest.Server) {
			s.EnableHTTP2 = true
			s.StartTLS()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := io.Copy(io.Discard, r.Body)
				assert.NoError(t, err)
				close(asked)
				<-r.Context().Done()
				_, _ = io.WriteString(w, `{"runs":[{}],"next_due_at":null}`)
			}))
			start(server)
			defer server.Close()
			c, err := New(Config{URL: server.URL})
			require.NoError(t, err)
			c.http = server.Client()
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				<-asked
				stop()
			}()
			lent, err := Lending{c}.ClaimRuns(ctx, operation.Claim{Kinds: []string{"k"}})
			if name == "HTTP/2" {
				require.ErrorIs(t, err, context.Canceled)
				return
			}
			require.NoError(t, err)
			assert.Len(t, lent.Runs, 1)
		})
	}
}
