package http_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// The API is a handler: mount it beside those of your own server. A credential that may only trigger, and that for one
// agent, is what a cron service needs.
func ExampleNew() {
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "greet", func(context.Context, *core.Task[any]) error { return nil })
	if _, err := s.Submit(context.Background(), core.NewTask{Agent: "ada", Kind: "greet"}); err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/v1/", httpadapter.New(s, httpadapter.Config{
		Tokens: []string{"everything"},
		Scoped: []httpadapter.Token{{
			Token: "cron-service",
			Grant: httpadapter.Grant{Scopes: []httpadapter.Scope{httpadapter.ScopeTrigger}, Agents: []string{"ada"}},
		}},
	}))
	server := httptest.NewServer(mux)
	defer server.Close()

	for _, agents := range []string{`["ada"]`, `["ada","bob"]`} {
		r, err := http.NewRequest(http.MethodPost, server.URL+"/v1/run-due", strings.NewReader(`{"agent_ids":`+agents+`}`))
		if err != nil {
			panic(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer cron-service")
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			panic(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		fmt.Println(res.StatusCode, strings.Contains(string(body), `"completed":1`))
	}
	// Output:
	// 200 true
	// 403 false
}
