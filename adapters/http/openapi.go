package http

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/seed-6f6f2c11/duly/adapters/http/operation"
)

// The API's description.

// openapi.json describes the API. A test holds live requests and answers against it, and the routes against its paths. What
// is in the program is openapi.json.gz, a ninth of it, as a function's cold start loads each byte: `make generate` writes it.
//
// A description that is wrong would be worse than none.
//
//go:embed openapi.json.gz
var packed []byte

// openapi unpacks the description at the first call.
// It is JSON within JSON's answer, so it must not be encoded again.
var openapi = sync.OnceValues(func() (json.RawMessage, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("unpack openapi.json: %w", err)
	}
	return io.ReadAll(r)
})

// document answers with the description of the API.
func (*api) document(*http.Request, operation.None) (json.RawMessage, error) { return openapi() }
