package lambda

import (
	"bytes"
	"context"
	"encoding/base64"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// callerKey is the key of a request's caller in its context.
type callerKey struct{}

// Caller is the ARN of the user or role that AWS found to have signed a request (AuthType AWS_IAM), from the context of
// a request to Config.HTTP. It is empty if AWS did not check a signature.
func Caller(ctx context.Context) string {
	arn, _ := ctx.Value(callerKey{}).(string)
	return arn
}

// readRequest turns an event into the request that it stands for. The error is one of the event.
func readRequest(ctx context.Context, from source, o object) (*http.Request, error) {
	body, err := readBody(o)
	if err != nil {
		return nil, err
	}
	about := o.object("requestContext")
	if arn := caller(about); arn != "" {
		ctx = context.WithValue(ctx, callerKey{}, arn)
	}
	method := o.text("httpMethod")
	if from == fromURL || from == fromGatewayV2 {
		method = about.object("http").text("method")
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
		r.Host = about.text("domainName")
	}
	for _, name := range []string{"Host", "Transfer-Encoding", "Content-Length"} {
		r.Header.Del(name) // they are fields of the request, or about bytes that we never saw
	}
	r.RemoteAddr = net.JoinHostPort(address(from, about, r.Header), "0")
	return r, nil
}

func readBody(o object) ([]byte, error) {
	body := o.text("body")
	if value[bool](o, "isBase64Encoded") {
		return base64.StdEncoding.DecodeString(body)
	}
	return []byte(body), nil
}

// path is the path of a request, escaped as it was sent as far as the sender of the event keeps that.
func path(from source, o object) string {
	if from != fromURL && from != fromGatewayV2 {
		return o.text("path")
	}
	p := o.text("rawPath")
	about := o.object("requestContext")
	stage := "/" + about.text("stage")
	// An HTTP API's own domain has the stage in front of the path, unless it is the default one.
	if rest, ok := strings.CutPrefix(p, stage); ok && strings.Contains(about.text("domainName"), ".execute-api.") &&
		(rest == "" || rest[0] == '/') && stage != "/" {
		return rest
	}
	return p
}

// setPath keeps the escapes of a path, which tell a slash within a segment from one between two.
func setPath(u *url.URL, raw string) {
	if !strings.HasPrefix(raw, "/") {
		raw = "/" + raw
	}
	u.Path = raw
	if plain, err := url.PathUnescape(raw); err == nil {
		u.Path, u.RawPath = plain, raw
	}
}

// query is the query string of a request. API Gateway's first version takes the escapes away, a load balancer does not.
func query(from source, o object) string {
	if from == fromURL || from == fromGatewayV2 {
		return o.text("rawQueryString")
	}
	values := url.Values(multi(o, "multiValueQueryStringParameters", "queryStringParameters"))
	if from == fromGatewayV1 {
		return values.Encode()
	}
	var pairs []string
	for name, all := range values {
		for _, v := range all {
			pairs = append(pairs, name+"="+v)
		}
	}
	slices.SortStableFunc(pairs, func(a, b string) int {
		a, _, _ = strings.Cut(a, "=")
		b, _, _ = strings.Cut(b, "=")
		return strings.Compare(a, b)
	})
	return strings.Join(pairs, "&")
}

// multi are members with several values each, or else those with one.
func multi(o object, many, one string) map[string][]string {
	if values := value[map[string][]string](o, many); len(values) > 0 {
		return values
	}
	values := map[string][]string{}
	for name, v := range value[map[string]string](o, one) {
		values[name] = []string{v}
	}
	return values
}

func header(o object) http.Header {
	h := http.Header{}
	for name, values := range multi(o, "multiValueHeaders", "headers") {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	if cookies := value[[]string](o, "cookies"); len(cookies) > 0 {
		h.Set("Cookie", strings.Join(cookies, "; "))
	}
	return h
}

// address is where a request came from, as AWS saw it: never what the client claims.
func address(from source, about object, h http.Header) string {
	switch from {
	case fromURL, fromGatewayV2:
		return about.object("http").text("sourceIp")
	case fromGatewayV1:
		return about.object("identity").text("sourceIp")
	default: // a load balancer adds the address that it saw at the end
		seen := strings.Join(h.Values("X-Forwarded-For"), ",")
		return strings.TrimSpace(seen[strings.LastIndexByte(seen, ',')+1:])
	}
}

// caller is who signed a request, in the two places where AWS says so.
func caller(about object) string {
	if arn := about.object("authorizer").object("iam").text("userArn"); arn != "" {
		return arn
	}
	return about.object("identity").text("userArn")
}
