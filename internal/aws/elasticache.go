package aws

import (
	"fmt"
	"net/url"
	"strings"
	"time"
)

// TokenLife is how long a token for ElastiCache is accepted at a login, and the most that AWS allows. A connection that has logged
// in stays for twelve hours.
const TokenLife = 15 * time.Minute

// ElastiCacheToken is the password with which a user with IAM authentication logs in to an ElastiCache, named as in its ARN:
// "replicationgroup:NAME" or "serverlesscache:NAME". It is a signed URL without its scheme. Making one calls nobody.
func (s *Signer) ElastiCacheToken(cache, user string, now time.Time) (string, error) {
	kind, name, found := strings.Cut(cache, ":")
	query := url.Values{"Action": {"connect"}, "User": {user}}
	switch {
	case !found || name == "" || kind != "replicationgroup" && kind != "serverlesscache":
		return "", fmt.Errorf("%q is no ElastiCache: it must be replicationgroup:NAME or serverlesscache:NAME", cache)
	case kind == "serverlesscache":
		query.Set("ResourceType", "ServerlessCache")
	}
	signer := *s
	signer.Service = "elasticache"
	u := &url.URL{Scheme: "http", Host: name, Path: "/", RawQuery: query.Encode()}
	signer.Presign("GET", u, sum(nil), TokenLife, now)
	return strings.TrimPrefix(u.String(), "http://"), nil
}
