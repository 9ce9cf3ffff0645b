package webhook_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/handlers/webhook"
)

// A server elsewhere runs the tasks of a kind.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, `{"digest": "all quiet"}`)
	}))
	defer server.Close()

	digest, err := webhook.New(webhook.Config{
		URL:           server.URL, // yours is https://agents.example/digest
		Secret:        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
		AllowLoopback: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{})
	if err != nil {
		log.Fatal(err)
	}
	core.Handle(s, "digest", digest.Run)

	ctx := context.Background()
	if _, err := s.Submit(ctx, core.NewTask{Agent: "ada", ID: "1", Kind: "digest"}); err != nil {
		log.Fatal(err)
	}
	if _, err := s.RunDue(ctx, core.Scope{}); err != nil {
		log.Fatal(err)
	}
	task, err := s.Task(ctx, "ada", "1")
	fmt.Println(task.Status, string(task.Result), err)
	// Output: completed {"digest":"all quiet"} <nil>
}
