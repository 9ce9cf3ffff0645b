package http

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// noHooks are hooks to which nothing is sent.
type noHooks struct{ Hooks }

// Each operation is described under its name, with its body and whether it needs a credential, and what is described is an operation.
func TestEachOperationIsDescribed(t *testing.T) {
	t.Parallel()
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	require.NoError(t, err)
	config := Config{
		CronSecret: "c", Events: NewEvents(), Hooks: noHooks{}, Metrics: http.NotFoundHandler(),
		Profiles: func(context.Context, string, int) ([]core.Profile, string, error) { return nil, "", nil },
	}
	type described struct {
		ID       string                  `json:"operationId"`
		Security *[]map[string][]string  `json:"security"`
		Body     struct{ Required bool } `json:"requestBody"`
	}
	var doc struct {
		Paths map[string]map[string]described
	}
	data, err := os.ReadFile("openapi.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(data, &doc))
	for _, rt := range New(s, config).(*api).table {
		at := rt.Method + " " + rt.Path
		found, ok := doc.Paths[rt.Path][strings.ToLower(rt.Method)]
		if !assert.True(t, ok, "%s is not described", at) {
			continue
		}
		if rt.ID != "" { // MemOS's calls have their own table
			assert.Equal(t, found.ID, rt.ID, at)
			assert.True(t, found.Body.Required || !rt.HasBody, "%s: requestBody.required", at)
		}
		assert.Equal(t, found.Security != nil && len(*found.Security) == 0, rt.Open, "%s: security", at)
		delete(doc.Paths[rt.Path], strings.ToLower(rt.Method))
	}
	for path, methods := range doc.Paths {
		assert.Empty(t, methods, "%s is described, and no operation", path)
	}
}
