package redisstore

// The URL of a Redis: one server, a cluster, or sentinels.

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// The kinds of a Redis that a URL can name, by the part after "redis" in its scheme.
const (
	oneServer = ""
	aCluster  = "+cluster"
	sentinels = "+sentinel"
)

// wrongScheme lists the schemes.
const wrongScheme = "must begin with redis://, rediss:// (TLS) or unix://, " +
	"or for a cluster with redis+cluster:// or rediss+cluster://, behind Sentinel with redis+sentinel:// or rediss+sentinel://"

// target is the parsed form of a URL.
// The options are go-redis' own, as its universal client takes them for all three sorts.
type target struct {
	options redis.UniversalOptions
	name    string // the URL without its secrets
	tls     bool
}

// parseURL reads the URL of a Redis: one server, the nodes of a cluster, or sentinels and the name of
// their master. Its errors contain neither the password nor the URL, as they end up in logs.
func parseURL(text string) (target, error) {
	scheme, rest, found := strings.Cut(text, "://")
	// "rediss" is tried first, as "redis" is a prefix of it.
	kind, secure := strings.CutPrefix(scheme, "rediss")
	known := secure
	if !secure {
		kind, known = strings.CutPrefix(scheme, "redis")
	}
	switch {
	case found && scheme == "unix":
		return parseOne(text)
	case !found, !known, kind != oneServer && kind != aCluster && kind != sentinels:
		return target{}, wrongURL(wrongScheme)
	}
	// net/url takes one host only, so the text after each comma is parsed separately.
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, path := rest[:end], rest[end:]
	// The last @: a password may have one that was not escaped, a host never has.
	at := strings.LastIndexByte(authority, '@') + 1
	hosts := strings.Split(authority[at:], ",")
	switch {
	case kind == oneServer && len(hosts) > 1:
		return target{}, wrongURL("names %d servers: use redis+cluster:// for the nodes of a cluster, redis+sentinel:// for sentinels", len(hosts))
	case kind == sentinels:
		return parseSentinels(secure, authority[:at], hosts, path)
	}
	// The name is made of the parsed parts, never of the text itself, which contains the password.
	t, err := parseHosts(secure, authority[:at], hosts, path)
	t.options.IsClusterMode = kind == aCluster
	t.name = scheme + "://" + strings.Join(t.options.Addrs, ",")
	switch {
	case err != nil:
		return target{}, err
	case kind == aCluster && t.options.DB != 0:
		return target{}, wrongURL("names the database %d, and a cluster has only 0: leave it out", t.options.DB)
	case kind == oneServer:
		t.name += "/" + strconv.Itoa(t.options.DB)
	}
	return t, nil
}

// parseSentinels reads the part after redis+sentinel://: the sentinels, then /MASTER or /MASTER/DB. The user and the
// password are those of the master; the sentinels' own, if they have some, are parameters.
func parseSentinels(secure bool, user string, hosts []string, path string) (target, error) {
	// Two parts: the master's name is a part of the path for duly, which go-redis does not know.
	path, query, _ := strings.Cut(path, "?")
	master, db, _ := strings.Cut(strings.Trim(path, "/"), "/")
	if master == "" {
		return target{}, wrongURL("must name the master behind its sentinels, as in redis+sentinel://host1:26379,host2:26379/mymaster/0")
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return target{}, wrongURL("has badly escaped parameters")
	}
	sentinelUser, sentinelPassword := values.Get("sentinel_username"), values.Get("sentinel_password")
	// The remaining parameters are for go-redis, and it refuses the ones that it does not know.
	values.Del("sentinel_username")
	values.Del("sentinel_password")
	for i, host := range hosts {
		// After the last ] there is a port at most: an IPv6 address has colons of its own.
		if !strings.Contains(host[strings.LastIndexByte(host, ']')+1:], ":") {
			hosts[i] = host + ":26379" // the port of sentinels, not of a server
		}
	}
	t, err := parseHosts(secure, user, hosts, "/"+db+"?"+values.Encode())
	if err != nil {
		return target{}, err
	}
	t.options.MasterName, err = url.PathUnescape(master)
	t.options.SentinelUsername, t.options.SentinelPassword = sentinelUser, sentinelPassword
	t.name = fmt.Sprintf("%s://%s/%s/%d", schemeOf(secure)+sentinels, strings.Join(t.options.Addrs, ","), master, t.options.DB)
	return t, err
}

// schemeOf is the scheme of a single server, which go-redis reads.
func schemeOf(secure bool) string {
	if secure {
		return "rediss"
	}
	return "redis"
}

// parseHosts reads each host as a URL of its own; user is empty or ends with an @.
// All of them share user, password, database and parameters: a URL has one place for each.
func parseHosts(secure bool, user string, hosts []string, path string) (target, error) {
	var all target
	for i, host := range hosts {
		if host == "" {
			return target{}, wrongURL("has an empty host: write host:port, separated by commas")
		}
		text := schemeOf(secure) + "://" + user + host + path
		t, err := parseOne(text)
		if err != nil {
			return target{}, err
		}
		if i == 0 {
			all = t
			continue
		}
		all.options.Addrs = append(all.options.Addrs, t.options.Addrs...)
	}
	if len(hosts) > 1 && all.options.TLSConfig != nil {
		// A name set for the first host would be wrong for the others.
		all.options.TLSConfig.ServerName = "" // each has its own
	}
	return all, nil
}

// parseOne reads the URL of one server.
func parseOne(text string) (target, error) {
	o, err := redis.ParseURL(text)
	if err != nil {
		// A url.Error quotes the URL with the password, so its text is thrown away.
		if _, ok := errors.AsType[*url.Error](err); ok {
			return target{}, wrongURL("cannot be read: does the password have a character that has to be escaped, such as @, / or #?")
		}
		return target{}, wrongURL("cannot be used: %s", strings.TrimPrefix(redact(err.Error(), text), "redis: "))
	}
	// Only these of the fields that a URL can set are taken over.
	return target{name: o.Network + "://" + o.Addr, tls: o.TLSConfig != nil, options: redis.UniversalOptions{
		Addrs: []string{o.Addr}, DB: o.DB, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig,
		PoolSize: o.PoolSize, ClientName: o.ClientName,
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout,
	}}, nil
}

// redact keeps a password that is part of a URL out of an error's text.
// The password is replaced by itself as well, in case the error quotes only a part of the URL.
func redact(text, address string) string {
	text = strings.ReplaceAll(text, address, "the URL")
	if at := strings.LastIndexByte(address, '@'); at >= 0 {
		if colon := strings.LastIndexByte(address[:at], ':'); colon >= 0 && colon+1 < at {
			text = strings.ReplaceAll(text, address[colon+1:at], "***")
		}
	}
	return text
}
