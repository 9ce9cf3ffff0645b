// Package aws reads the secrets of a host on AWS, and logs in to Redis with them: by a secret that is read again when Redis refuses it, or by tokens of IAM
// for ElastiCache. It calls Secrets Manager without the SDK.
package aws

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	sigv4 "github.com/seed-6f6f2c11/duly/internal/aws"
)

// readIn is how long Secrets Manager has to answer. A function in a VPC that cannot reach it finds out before its start is over.
const readIn = 3 * time.Second

// signer signs as the function's role: Lambda has its credentials in the environment.
func signer(get func(string) string) sigv4.Signer {
	return sigv4.Signer{
		AccessKey: get("AWS_ACCESS_KEY_ID"), SecretKey: get("AWS_SECRET_ACCESS_KEY"), SessionToken: get("AWS_SESSION_TOKEN"),
		Region: get("AWS_REGION"),
	}
}

// Vault reads the secrets that the environment names: when the program starts, and the Redis secret again when Redis refuses it. None is in the
// configuration, so that a rotated secret needs no deployment. It is safe for concurrent use.
type Vault struct {
	secrets sigv4.Secrets
	redis   string // the secret of Redis

	mu             sync.Mutex
	user, password string
}

// NewVault makes a vault of DULY_REDIS_SECRET_ID, DULY_WEBHOOK_SECRET_ID, DULY_APPROVALS_SECRET_ID and the credentials of the role, without any call.
func NewVault(get func(string) string) *Vault {
	return &Vault{redis: get("DULY_REDIS_SECRET_ID"), secrets: sigv4.Secrets{
		Signer: signer(get), Endpoint: get("AWS_ENDPOINT_URL_SECRETS_MANAGER"),
		Client: &http.Client{Timeout: readIn, Transport: &http.Transport{DisableKeepAlives: true}}, Now: core.SystemClock{}.Now,
	}}
}

// Open reads the secrets, and returns the environment with them: where it names one, it has the value in the variable that
// would hold it.
func (v *Vault) Open(ctx context.Context, get func(string) string) (func(string) string, error) {
	values := map[string]string{}
	if v.redis != "" {
		url, err := v.login(ctx)
		if err != nil {
			return nil, fmt.Errorf("DULY_REDIS_SECRET_ID: %w", err)
		}
		values[redisstore.EnvURL] = url
	}
	for variable, name := range map[string]string{"DULY_WEBHOOK_SECRET_ID": "DULY_WEBHOOK_SECRET", "DULY_APPROVALS_SECRET_ID": "DULY_APPROVALS_SECRET"} { //nolint:gosec // names of variables
		id := get(variable)
		if id == "" {
			continue
		}
		keys, err := v.keys(ctx, id)
		if err == nil && keys["key"] == "" {
			err = fmt.Errorf("the secret %q has no key \"key\"", id)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		values[name] = keys["key"]
	}
	return func(name string) string { return cmp.Or(values[name], get(name)) }, nil
}

// login reads the secret of Redis: its URL, and the user and password that are in the URL, or beside it where AWS rotates them.
func (v *Vault) login(ctx context.Context) (url string, err error) {
	keys, err := v.keys(ctx, v.redis)
	if err != nil {
		return "", err
	}
	if keys["url"] == "" {
		return "", fmt.Errorf("the secret %q has no key \"url\"", v.redis)
	}
	user, password, err := redisstore.CredentialsOf(keys["url"])
	if err != nil {
		return "", fmt.Errorf("the secret %q: %w", v.redis, err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.user, v.password = cmp.Or(keys["username"], user), cmp.Or(keys["password"], password)
	return keys["url"], nil
}

// keys reads a secret that is a JSON object of strings.
func (v *Vault) keys(ctx context.Context, id string) (map[string]string, error) {
	value, err := v.secrets.Value(ctx, id)
	if err != nil {
		return nil, err
	}
	var members map[string]any
	if json.Unmarshal([]byte(value), &members) != nil { // its error could quote the secret
		return nil, fmt.Errorf("the secret %q must be a JSON object", id)
	}
	keys := map[string]string{}
	for name, v := range members {
		keys[name], _ = v.(string)
	}
	return keys, nil
}

// credentials are those of a new connection. A host that has changed is for the next environments.
func (v *Vault) credentials(ctx context.Context, renew bool) (user, password string, err error) {
	if renew {
		if _, err := v.login(ctx); err != nil {
			return "", "", err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.user, v.password, nil
}

// LogIn says how connections to Redis log in: by a token of IAM, made for each of them, by a secret that is read again, or by
// the URL. DULY_ELASTICACHE is replicationgroup:NAME or serverlesscache:NAME, and DULY_ELASTICACHE_USER one of its users.
func (v *Vault) LogIn(c *redisstore.Config, get func(string) string) error {
	cache, user := get("DULY_ELASTICACHE"), get("DULY_ELASTICACHE_USER")
	switch {
	case (cache == "") != (user == ""):
		return errors.New("set DULY_ELASTICACHE and DULY_ELASTICACHE_USER together")
	case cache != "":
		s := signer(get)
		if _, err := s.ElastiCacheToken(cache, user, core.SystemClock{}.Now()); err != nil {
			return fmt.Errorf("DULY_ELASTICACHE: %w", err)
		}
		c.Credentials = func(context.Context, bool) (string, string, error) {
			token, err := s.ElastiCacheToken(cache, user, core.SystemClock{}.Now())
			return user, token, err
		}
	case v.redis != "":
		c.Credentials = v.credentials
	}
	return nil
}
