// Package requestbody reads the bodies of HTTP requests: what must be JSON, how much of it, and what to answer when one cannot be
// read.
package requestbody

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
)

// Media types have no second meaning here: forms and text are refused, as
// they need no preflight in a browser.
var errMediaType = problem.New(problem.CodeMediaType, "the body must be application/json")

// JSON reads the whole body of a request, which has to be application/json and not empty. The caller, which parses it, checks
// that it is JSON.
// The charset is not looked at: JSON is UTF-8.
func JSON(r *http.Request) ([]byte, error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, errMediaType
	}
	data, err := All(r.Body)
	if err == nil && len(data) == 0 {
		err = &core.InvalidError{Field: "body", Reason: "is required"}
	}
	return data, err
}

// All reads a body to its end. A limit is set by [http.MaxBytesReader].
// It is for those who have checked the type themselves, or take any.
func All(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return nil, Problem(err)
	}
	return data, nil
}

// Again is a body that was read, for those who read it next.
func Again(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }

// Problem is how to answer when a body cannot be read. A body that ends early is the request's fault, but not one of what the
// sender means: the same message may arrive whole the next time, so it is not a *[core.InvalidError].
func Problem(err error) *problem.Error {
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return problem.New(problem.CodeTooLarge, fmt.Sprintf("the body is too large: the limit is %d bytes", tooLarge.Limit))
	}
	p := problem.New(core.CodeInvalid, "body cannot be read: it ends early or is badly framed")
	p.Field = "body"
	return p
}
