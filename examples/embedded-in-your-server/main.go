// A web server of one's own with duly inside: the daemon runs due tasks in the same process, and the task API hangs below
// /duly/. Without DULY_REDIS_URL tasks live in memory.
//
//	go run ./examples/embedded-in-your-server
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/daemon"
	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Reminder is what a task of the kind "remind" holds.
type Reminder struct {
	Text string `json:"text"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:8090")
	if err == nil {
		fmt.Println("listening on http://" + listener.Addr().String())
		err = run(ctx, listener, os.Getenv("DULY_REDIS_URL"))
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done, then lets running tasks and requests end.
func run(ctx context.Context, listener net.Listener, redisURL string) error {
	st, closeStore, err := open(ctx, redisURL)
	if err != nil {
		return err
	}
	defer closeStore()
	s, err := core.New(st, core.Config{})
	if err != nil {
		return err
	}
	core.Handle(s, "remind", func(_ context.Context, t *core.Task[Reminder]) error {
		return t.SetResult(t.Agent + ": " + t.Payload.Text)
	})
	waker, _ := st.(store.Waker) // both stores are one
	d, err := daemon.New(s, daemon.Config{Waker: waker})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ticking := make(chan error, 1)
	go func() { ticking <- d.Run(ctx) }()
	server := &http.Server{Handler: routes(s), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.WithoutCancel(ctx)) })
	if err = server.Serve(listener); errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	cancel()                           // the end of the server also ends the daemon
	return errors.Join(err, <-ticking) // it lets running tasks end
}

// routes are the server's own, and the task API below /duly/, for this machine only: give it tokens to open it.
func routes(s *core.Scheduler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /remind", func(w http.ResponseWriter, r *http.Request) {
		tasks, err := s.Submit(r.Context(), core.NewTask{
			Agent: r.FormValue("agent"), Kind: "remind", Payload: Reminder{Text: r.FormValue("text")}, Delay: 10 * time.Minute,
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		_, _ = fmt.Fprintln(w, tasks[0].ID)
	})
	mux.Handle("/duly/", http.StripPrefix("/duly", httpadapter.New(s, httpadapter.Config{LocalOnly: true})))
	return mux
}

// open is the store: in memory without a URL, so that the example runs by itself.
func open(ctx context.Context, url string) (core.Store, func(), error) {
	if url == "" {
		return memstore.New(memstore.Config{}), func() {}, nil
	}
	st, err := redisstore.Open(ctx, redisstore.Config{URL: url})
	if err != nil {
		return nil, nil, err
	}
	return st, func() { _ = st.Close() }, nil
}
