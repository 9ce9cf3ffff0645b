package redisstore

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"
)

// A store on a client that the caller has made.

// New makes a store on a client of the caller's, with its pool, hooks and tracing; it makes the same checks as [Open]. Close leaves the
// client open. The client has to be a *[redis.Client] or a *[redis.ClusterClient] with ContextTimeoutEnabled, as a call ends when
// its context does, and with MaxRetries of -1: a script whose answer was lost is repeated by the store. URL, Options, Credentials and
// the files of TLS in config are refused: they are the client's.
func New(ctx context.Context, client redis.UniversalClient, config Config) (*Store, error) {
	config = config.withDefaults()
	// The client is checked first: a mistake there makes every later message
	// about the configuration misleading.
	to, err := targetOf(client)
	if err == nil {
		err = config.validate()
	}
	if err == nil && (config.URL != "" || config.Options != nil || config.CAFile != "" || config.CertFile != "" || config.KeyFile != "" ||
		config.Credentials != nil) {
		err = misconfigured("URL", nil, "and Options, CAFile, CertFile, KeyFile and Credentials are the client's: leave them empty")
	}
	if err != nil {
		return nil, fmt.Errorf("redisstore: %w", err)
	}
	s, err := on(ctx, client, &to, config, nil)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// targetOf is the target that a client is connected to. It refuses a client that a store cannot rely on.
// A cluster client and a client of one server have the same fields under different
// types, which is why each case copies them. Ring and other universal clients are
// refused: a script's keys must lie on one node.
func targetOf(client redis.UniversalClient) (target, error) {
	var t target
	var retries int
	var ends bool
	switch c := client.(type) {
	case *redis.Client:
		o := c.Options()
		t = target{name: o.Addr, tls: o.TLSConfig != nil, options: redis.UniversalOptions{Username: o.Username}}
		retries, ends = o.MaxRetries, o.ContextTimeoutEnabled
	case *redis.ClusterClient:
		o := c.Options()
		t = target{name: strings.Join(o.Addrs, ","), tls: o.TLSConfig != nil, options: redis.UniversalOptions{Username: o.Username}}
		retries, ends = o.MaxRetries, o.ContextTimeoutEnabled
	default:
		return t, misconfigured("client", nil, "must be a *redis.Client or a *redis.ClusterClient, not %T", client)
	}
	// MaxRetries of 0 means go-redis' own default of three only before NewClient has
	// replaced it: Options returns -1 as 0.
	switch {
	case !ends:
		return t, misconfigured("client", nil, "must be made with ContextTimeoutEnabled: true, so that a call ends when its context does")
	case retries > 0:
		return t, misconfigured("client", nil, "must be made with MaxRetries: -1, not %d retries: the store repeats what may be repeated", retries)
	}
	return t, nil
}
