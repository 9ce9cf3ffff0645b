package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/url"
	"sort"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/strictjson"
)

// HTTP requests, as four services of AWS write them into events. Each of them has its own names, and its own habits
// of escaping: they end here.

// callerKey is the key of a request's caller in its context.
// It is a type of its own, so that no other package can set or read it.
type callerKey struct{}

// Caller is the ARN of the user or role that AWS found to have signed a request (AuthType AWS_IAM), from the context of
// a request to Config.HTTP. It is empty if AWS did not check a signature.
func Caller(ctx context.Context) string {
	arn, _ := ctx.Value(callerKey{}).(string)
	return arn
}

// readRequest turns an event into the HTTP request that it represents. An error means an invalid event.
func readRequest(ctx context.Context, from source, o strictjson.Object) (*http.Request, error) {
	body, err := readBody(o)
	if err != nil {
		return nil, err
	}
	about := o.Object("requestContext")
	if arn := caller(about); arn != "" {
		ctx = context.WithValue(ctx, callerKey{}, arn)
	}
	method := o.Text("httpMethod")
	if from == fromURL || from == fromGatewayV2 {
		method = about.Object("http").Text("method")
	}
	// net/http takes an empty method for GET, and such a request would read something.
	if method == "" { // which net/http takes for GET
		return nil, errors.New("lambda: the request has no method")
	}
	r, err := http.NewRequestWithContext(ctx, method, "/", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	setPath(r.URL, path(from, o))
	r.URL.RawQuery = query(from, o)
	r.RequestURI = r.URL.RequestURI()
	r.Header = header(o)
	r.Host = r.Header.Get("Host")
	if r.Host == "" {
		r.Host = about.Text("domainName")
	}
	for _, name := range []string{"Host", "Transfer-Encoding", "Content-Length"} {
		r.Header.Del(name) // they are fields of the request, or about bytes that we never saw
	}
	// The port is not known. 0 keeps the form that programs expect.
	r.RemoteAddr = net.JoinHostPort(address(from, about, r.Header), "0")
	return r, nil
}

// readBody decodes the body of a request, where the event says that it is encoded.
func readBody(o strictjson.Object) ([]byte, error) {
	body := o.Text("body")
	if strictjson.Value[bool](o, "isBase64Encoded") {
		return base64.StdEncoding.DecodeString(body)
	}
	return []byte(body), nil
}

// path is the path of a request, escaped as it was sent as far as the sender of the event keeps that.
func path(from source, o strictjson.Object) string {
	if from != fromURL && from != fromGatewayV2 {
		return o.Text("path")
	}
	p := "/" + strings.TrimLeft(o.Text("rawPath"), "/") // as setPath has it
	about := o.Object("requestContext")
	stage := "/" + about.Text("stage")
	// An HTTP API's own domain has the stage in front of the path, unless it is the default one.
	if rest, ok := strings.CutPrefix(p, stage); ok && strings.Contains(about.Text("domainName"), ".execute-api.") &&
		(rest == "" || rest[0] == '/') && stage != "/" {
		return rest
	}
	return p
}

// setPath keeps the escapes of a path, which distinguish a slash within a segment from one between two.
// A path that cannot be unescaped is taken literally. AWS shows URLs with a slash at the end, so a user who appends a path to
// one gets two.
func setPath(u *url.URL, raw string) {
	raw = "/" + strings.TrimLeft(raw, "/")
	u.Path = raw
	if plain, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = plain, raw
	}
}

// query is the query string of a request. API Gateway's first version takes the escapes away, a load balancer does not.
func query(from source, o strictjson.Object) string {
	if from == fromURL || from == fromGatewayV2 {
		return o.Text("rawQueryString")
	}
	values := url.Values(multi(o, "multiValueQueryStringParameters", "queryStringParameters"))
	if from == fromGatewayV1 {
		// Encoding again gives a query with the same meaning, though not with the same bytes.
		return values.Encode()
	}
	var pairs []string
	for name, all := range values {
		for _, v := range all {
			pairs = append(pairs, name+"="+v)
		}
	}
	// Values of one name keep their order; the order of names means nothing.
	sort.SliceStable(pairs, func(i, k int) bool {
		a, _, _ := strings.Cut(pairs[i], "=")
		b, _, _ := strings.Cut(pairs[k], "=")
		return a < b
	})
	return strings.Join(pairs, "&")
}

// multi are members with several values each, or else those with one.
func multi(o strictjson.Object, many, one string) map[string][]string {
	if values := strictjson.Value[map[string][]string](o, many); len(values) > 0 {
		return values
	}
	values := map[string][]string{}
	for name, v := range strictjson.Value[map[string]string](o, one) {
		values[name] = []string{v}
	}
	return values
}

// header has all headers, with cookies joined as a browser would send them.
func header(o strictjson.Object) http.Header {
	h := http.Header{}
	for name, values := range multi(o, "multiValueHeaders", "headers") {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	if cookies := strictjson.Value[[]string](o, "cookies"); len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	return h
}

// address is where a request came from, as AWS saw it: never what the client claims.
func address(from source, about strictjson.Object, h http.Header) string {
	switch from {
	case fromURL, fromGatewayV2:
		return about.Object("http").Text("sourceIp")
	case fromGatewayV1:
		return about.Object("identity").Text("sourceIp")
	// The addresses in front of it may be forged by the client.
	default: // a load balancer adds the address that it saw at the end
		seen := strings.Join(h.Values("X-Forwarded-For"), ",")
		return strings.TrimSpace(seen[strings.LastIndexByte(seen, ',')+1:])
	}
}

// caller is who signed a request, from the two places where AWS says so.
// It is empty if the request is not signed.
func caller(about strictjson.Object) string {
	if arn := about.Object("authorizer").Object("iam").Text("userArn"); arn != "" {
		return arn
	}
	return about.Object("identity").Text("userArn")
}
