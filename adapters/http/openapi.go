package http

import (
	_ "embed"
	"encoding/json"
	"net/http"
)

// openapi describes the API. A test holds live requests and answers against it, and the routes against its paths.
//
//go:embed openapi.json
var openapi json.RawMessage

// document answers with the description of the API.
func (*api) document(*http.Request) (int, any, error) { return http.StatusOK, openapi, nil }
