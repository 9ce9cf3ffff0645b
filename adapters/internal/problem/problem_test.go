package problem_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// codes are the constants of type Code (or core.Code) in a source file.
func codes(t *testing.T, path string) []core.Code {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
	require.NoError(t, err)
	var found []core.Code
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || len(spec.Values) != 1 {
			return true
		}
		name := ""
		switch of := spec.Type.(type) {
		case *ast.Ident:
			name = of.Name
		case *ast.SelectorExpr:
			name = of.Sel.Name
		}
		if value, ok := spec.Values[0].(*ast.BasicLit); ok && name == "Code" {
			text, err := strconv.Unquote(value.Value)
			require.NoError(t, err)
			found = append(found, core.Code(text))
		}
		return true
	})
	return found
}

// Each code has its status, which clients rely on: a new code in core fails here until it is given one.
func TestEachCodeHasItsStatus(t *testing.T) {
	t.Parallel()
	want := map[core.Code]int{
		core.CodeInvalid: 400, core.CodeNotFound: 404, core.CodeLimit: 429, core.CodeQuota: 429, core.CodeConflict: 409, core.CodeDisabled: 409,
		core.CodeLeaseLost: 409, core.CodeUnavailable: 503, core.CodeStoreFull: 503, core.CodeAbandoned: 503,
		core.CodeInternal: 500, core.CodeRunsFailed: 500, core.CodeSpawnRate: 429, core.CodeSpawnDepth: 422,
		problem.CodeUnauthorized: 401, core.CodeForbidden: 403, problem.CodeNoRoute: 404, problem.CodeMethod: 405,
		problem.CodeTooLarge: 413, problem.CodeMediaType: 415, problem.CodeTooMany: 429, problem.CodeDraining: 503,
	}
	of := codes(t, "../../../core/model/errors.go")
	require.Len(t, of, 15, "those of core are found")
	own := codes(t, "problem.go")
	require.Len(t, own, 7)
	for _, code := range append(of, own...) {
		assert.Contains(t, want, code, "a code without a status")
		assert.Equal(t, want[code], problem.Status(code), code)
		assert.Equal(t, want[code], problem.New(code, "x").Status, code)
	}
	assert.Equal(t, 500, problem.Status("unheard of"))
}

// The description of the API lists the codes that it answers with.
func TestTheCodesAreDescribed(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../http/openapi.json")
	require.NoError(t, err)
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Enum []core.Code }
		}
	}
	require.NoError(t, json.Unmarshal(data, &doc))
	described := doc.Components.Schemas["Code"].Enum
	for _, code := range append(codes(t, "../../../core/model/errors.go"), codes(t, "problem.go")...) {
		assert.Contains(t, described, code)
	}
}

// There is one writer: a second one would drift from it again.
func TestNobodyElseWritesProblems(t *testing.T) {
	t.Parallel()
	for _, root := range []string{"../..", "../../../sam"} {
		require.NoError(t, filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, "internal/problem/problem.go") {
				return err
			}
			data, err := os.ReadFile(path)
			assert.NotContains(t, string(data), "application/problem+json", path)
			return err
		}))
	}
}

// What is wrong with the input is said; what went wrong inside is not, however it is wrapped.
func TestAnErrorBecomesAProblem(t *testing.T) {
	t.Parallel()
	secret := errors.New("dial tcp 10.1.2.3:6379: password hunter2")
	for _, c := range []struct {
		err    error
		status int
		code   core.Code
		detail string
	}{
		{&core.InvalidError{Field: "at", Reason: "is in the past"}, 400, "invalid", "at is in the past"},
		{&store.LimitError{Agent: "a", Limit: 5}, 429, "limit", `agent "a" has 5 live tasks`},
		{&store.LimitError{Agent: "a", Quota: "live", Limit: 5, Used: 5}, 429, "quota", `the quota live of agent "a": 5 of 5`},
		{&store.LimitError{Agent: "a", Quota: "kinds", Field: "kind", Reason: "kind no"}, 403, "quota", `the quota kinds of agent "a": kind no`},
		{&breaker.Error{Agent: "a", Depth: 5, Limit: 4, Quota: true}, 403, "quota", `raise the quota depth`},
		{&model.DisabledError{Kind: "k"}, 409, "kind_disabled", "disabled"},
		{store.ErrFull, 503, "store_full", "out of memory"},
		{&store.Error{Verb: "read", Err: secret}, 503, "unavailable", "Redis is unavailable; the request may have been stored."},
		{&core.RunsError{Count: 1, Failures: []model.RunFailure{{Err: secret}}}, 500, "internal", "internal error"},
		{secret, 500, "internal", "internal error"},
		{problem.New(problem.CodeDraining, "later"), 503, "draining", "later"},
	} {
		for _, err := range []error{c.err, fmt.Errorf("submit: %w", c.err), errors.Join(c.err, errors.New("hunter2"))} {
			p := problem.Of(err)
			assert.Equal(t, c.status, p.Status, err)
			assert.Equal(t, c.code, p.Code)
			assert.Contains(t, p.Detail, c.detail)
			if c.status >= 500 && c.code != core.CodeStoreFull {
				assert.NotContains(t, p.Detail, "hunter2")
			}
		}
	}
	assert.Equal(t, "at", problem.Of(&core.InvalidError{Field: "at", Reason: "is in the past"}).Field)
}

func TestAProblemIsWritten(t *testing.T) {
	t.Parallel()
	write := func(p *problem.Error) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		require.NoError(t, p.Write(w))
		assert.Equal(t, p.Status, w.Code)
		assert.Equal(t, "application/problem+json", w.Header().Get("Content-Type"))
		assert.Equal(t, strconv.Itoa(w.Body.Len()), w.Header().Get("Content-Length"))
		assert.True(t, json.Valid(w.Body.Bytes()))
		return w
	}
	p := problem.New(core.CodeInvalid, "x is wrong")
	p.Field = "x"
	assert.JSONEq(t, `{"type":"about:blank","title":"Bad Request","status":400,"detail":"x is wrong","code":"invalid","field":"x"}`,
		write(p).Body.String())
	assert.Equal(t, "GET, HEAD", write(problem.Method([]string{"GET", "HEAD"})).Header().Get("Allow"))
	assert.Equal(t, "5", write(problem.TooMany("later", 5*time.Second)).Header().Get("Retry-After"))
	assert.Equal(t, "Bearer", write(problem.Unauthorized("who?")).Header().Get("WWW-Authenticate"))
	assert.Equal(t, 500, write(problem.AnswerTooLarge("too much")).Code)
	p = problem.New(core.CodeUnavailable, "partly")
	p.Report = &core.Report{Ran: 3}
	assert.Contains(t, write(p).Body.String(), `"report":{"agents":0,"ran":3`)
}
