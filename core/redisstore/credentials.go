package redisstore

// Credentials that change while a store is open: passwords that are rotated, and tokens that expire.

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// Credentials returns the user and the password for a connection that is being made. It is called for each new connection, by
// many goroutines, so it should remember what it found. It is called with renew after the server has refused what it returned: then
// it reads them again from where they are kept, and later calls return what it found. An error fails the call that needed them.
type Credentials func(ctx context.Context, renew bool) (user, password string, err error)

// renewPause is how long one renewal serves all: while the credentials are wrong for good, every call is refused, and
// not each of them should ask the secret store.
const renewPause = time.Second

// renewal hands out credentials, and has them renewed when the server refuses them.
type renewal struct {
	ask Credentials
	// renewed counts renewals: a call that was refused after another one has renewed need not renew again.
	renewed atomic.Int64

	mu   sync.Mutex // held during a renewal: all others that were refused wait for it
	last time.Time  // when the last one began
}

// next has the form of go-redis' provider.
func (r *renewal) next(ctx context.Context) (user, password string, err error) {
	return r.ask(ctx, false)
}

// refused is called after the server has refused a call that began after so many renewals. It reports whether another try may help.
func (r *renewal) refused(ctx context.Context, before int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.renewed.Load() != before {
		return true
	}
	now := time.Now() //nolint:forbidigo // between calls to this client; no task depends on it
	if now.Sub(r.last) < renewPause {
		return false
	}
	r.last = now
	if _, _, err := r.ask(ctx, true); err != nil {
		return false // the call keeps the error of the server
	}
	r.renewed.Add(1)
	return true
}

// use makes the client of some options ask for credentials.
func (r *renewal) use(o *redis.UniversalOptions) {
	o.CredentialsProviderContext = r.next
	then := o.OnConnect
	o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
		// A connection without a password fails at its first command only, and would stay in the pool.
		if err := c.Ping(ctx).Err(); err != nil || then == nil {
			return err
		}
		return then(ctx, c)
	}
}

// hooked makes a client use a hook.
func hooked(client redis.UniversalClient, h redis.Hook) {
	if cluster, ok := client.(*redis.ClusterClient); ok {
		// Each node has connections of its own, and some calls of the store go to a node directly.
		cluster.OnNewNode(func(node *redis.Client) { node.AddHook(h) })
		return
	}
	client.AddHook(h)
}

// DialHook does not change dialling: credentials are sent later.
func (*renewal) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

// ProcessHook repeats a command once that was refused. Nothing of it was executed, so that this is safe for any.
func (r *renewal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		before := r.renewed.Load()
		err := next(ctx, cmd)
		if unauthorized(err) && r.refused(ctx, before) {
			return next(ctx, cmd)
		}
		return err
	}
}

// ProcessPipelineHook does the same for a pipeline, of which the server refuses all commands or none.
func (r *renewal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		before := r.renewed.Load()
		err := next(ctx, cmds)
		if unauthorized(err) && r.refused(ctx, before) {
			return next(ctx, cmds)
		}
		return err
	}
}

// CredentialsOf is the user and the password that a URL of [Config] contains, both empty if it has none. Its errors show neither.
func CredentialsOf(url string) (user, password string, err error) {
	t, err := parseURL(url)
	return t.options.Username, t.options.Password, err
}

// unauthorized reports whether the server refused the credentials of a connection, or had none.
func unauthorized(err error) bool {
	return err != nil && (redis.HasErrorPrefix(err, "WRONGPASS") || redis.HasErrorPrefix(err, "NOAUTH"))
}
