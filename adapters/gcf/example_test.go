package gcf_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/gcf"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
)

// A function is an http.Handler. Cloud Scheduler's headers make a request a tick; that they are its own, Verify checks.
func ExampleFunction_ServeHTTP() {
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		panic(err)
	}
	core.Handle(s, "digest", func(context.Context, *core.Task[any]) error { return nil })
	if _, err := s.Submit(context.Background(), core.NewTask{Agent: "ada", Kind: "digest"}); err != nil {
		panic(err)
	}
	f, err := gcf.New(s, gcf.Config{Verify: gcf.Private}) // Google lets in only whom the service names
	if err != nil {
		panic(err)
	}
	for range 2 { // Cloud Scheduler delivers at least once
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set("X-CloudScheduler", "true")
		r.Header.Set("X-CloudScheduler-JobName", "duly")
		r.Header.Set("X-CloudScheduler-ScheduleTime", "2026-11-02T07:17:00Z")
		w := httptest.NewRecorder()
		f.ServeHTTP(w, r)
		fmt.Println(w.Code, strings.Contains(w.Body.String(), `"completed":1`), strings.Contains(w.Body.String(), `"duplicate":true`))
	}
	// Output:
	// 200 true false
	// 200 false true
}
