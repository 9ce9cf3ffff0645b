// Package sdk is what handlers need of Amazon's library: its configuration, and what its errors mean for a run.
package sdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/contract"
)

// Load reads the environment, the files of the user and the role of the machine as all of Amazon's programs do. It calls no server. A call is tried once: duly
// repeats it by the rules of its task.
func Load(ctx context.Context, region, endpoint string) (aws.Config, error) {
	c, err := config.LoadDefaultConfig(ctx, config.WithRetryer(func() aws.Retryer { return aws.NopRetryer{} }))
	if err != nil {
		return c, fmt.Errorf("read the configuration of AWS: %w", err)
	}
	if region != "" {
		c.Region = region
	}
	if c.Region == "" {
		return c, &core.ConfigError{Field: "Region", Reason: "must be given: as region, or as AWS_REGION in the environment"}
	}
	if endpoint != "" {
		c.BaseEndpoint = aws.String(endpoint)
	}
	return c, nil
}

// passing are codes of errors that another attempt mends, although they are the caller's.
var passing = []string{"Expired", "RequestTimeTooSkewed", "ResourceConflict", "UnrecognizedClient"}

// Failure is what an error of the library means for a run. from begins its text.
func Failure(from string, err error, now time.Time) error {
	said, answered := errors.AsType[smithy.APIError](err)
	if !answered {
		return fmt.Errorf("%s: %w", from, err)
	}
	r := &contract.Reply{From: from, Header: http.Header{}, Body: []byte(text(said))}
	if over, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && over.Response != nil {
		r.Status, r.Header = over.HTTPStatusCode(), over.Response.Header
	}
	throttled := retry.ThrottleErrorCode{Codes: retry.DefaultThrottleErrorCodes}.IsErrorThrottle(err) == aws.TrueTernary
	switch {
	case throttled || r.Status == http.StatusTooManyRequests:
		return r.Throttled(now)
	case r.Status < http.StatusBadRequest, begins(said.ErrorCode(), passing):
		return r.Err()
	default:
		return r.Refused(now)
	}
}

// begins reports whether a text begins with one of some others.
func begins(text string, with []string) bool {
	for _, w := range with {
		if strings.HasPrefix(text, w) {
			return true
		}
	}
	return false
}

// text is what an error says. What follows about a signature quotes the headers that were signed, which are secret.
func text(said smithy.APIError) string {
	message, _, _ := strings.Cut(said.ErrorMessage(), "The Canonical String")
	return said.ErrorCode() + " " + message
}
