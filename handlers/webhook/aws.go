package webhook

// The identity of a program on AWS: a signature by the credentials of its role, as IAM verifies it.

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/aws"
)

// AWSConfig says who signs, and for which service.
type AWSConfig struct {
	// AccessKey, SecretKey and SessionToken are those of a role that may lambda:InvokeFunctionUrl.
	AccessKey, SecretKey, SessionToken string
	// Region is the server's region.
	Region string
	// Service is "lambda" if empty, for the URL of a function; for API Gateway it is execute-api.
	Service string
	// Clock is core.SystemClock if nil.
	Clock core.Clock
}

// With fills in what is empty from the environment of AWS: region and credentials.
func (c AWSConfig) With(get func(string) string) AWSConfig {
	c.Region = cmp.Or(c.Region, get("AWS_REGION"))
	if c.AccessKey == "" {
		c.AccessKey, c.SecretKey, c.SessionToken = get("AWS_ACCESS_KEY_ID"), get("AWS_SECRET_ACCESS_KEY"), get("AWS_SESSION_TOKEN")
	}
	return c
}

// RegionOf is the region in the URL of a function, as in https://abc.lambda-url.eu-north-1.on.aws/; empty for any other URL.
func RegionOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	rest, ok := strings.CutSuffix(u.Hostname(), ".on.aws")
	_, region, found := strings.Cut(rest, ".lambda-url.")
	if !ok || !found || strings.Contains(region, ".") {
		return ""
	}
	return region
}

// AWSIdentity is an [Identity]: each message is signed by Signature Version 4. It is safe for concurrent use.
type AWSIdentity struct {
	signer aws.Signer
	clock  core.Clock
}

// NewAWSIdentity checks the configuration, without any call. Its error is a *[core.ConfigError], without the credentials.
func NewAWSIdentity(c AWSConfig) (*AWSIdentity, error) {
	switch {
	case c.Region == "":
		return nil, &core.ConfigError{Field: "Region", Reason: "must be the region of the server: it is in the URL of a function, or AWS_REGION in the environment"}
	case c.AccessKey == "" || c.SecretKey == "":
		return nil, &core.ConfigError{Field: "AccessKey", Reason: "must be set, as must SecretKey: they are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment"}
	}
	if c.Clock == nil {
		c.Clock = core.SystemClock{}
	}
	return &AWSIdentity{clock: c.Clock, signer: aws.Signer{
		AccessKey: c.AccessKey, SecretKey: c.SecretKey, SessionToken: c.SessionToken, Region: c.Region, Service: cmp.Or(c.Service, "lambda"),
	}}, nil
}

// Prove signs a message.
func (a *AWSIdentity) Prove(r *http.Request, body []byte) error {
	a.signer.Sign(r, body, a.clock.Now())
	return nil
}
