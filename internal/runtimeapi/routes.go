package runtimeapi

import (
	"io"
	"net/http"
	"strconv"
	"time"
)

func (e *Environment) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", e.next)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/response", e.response)
	mux.HandleFunc("POST /2018-06-01/runtime/invocation/{id}/error", e.failure)
	mux.HandleFunc("POST /2018-06-01/runtime/init/error", e.failedInit)
	mux.HandleFunc("POST /2020-01-01/extension/register", e.register)
	mux.HandleFunc("GET /2020-01-01/extension/event/next", e.wait)
	return mux
}

// next completes the invocation before, and waits for another one.
func (e *Environment) next(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	if i := e.current; i != nil && i.answered {
		// The invocation is complete only now, not with the answer: the program may still work after
		// that.
		close(i.done)
		e.current = nil
	}
	e.mu.Unlock()
	var i *invocation
	select {
	case i = <-e.queue:
	case <-e.closed:
		return
	case <-r.Context().Done():
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Lambda-Runtime-Aws-Request-Id", i.id)
	h.Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(e.timeout).UnixMilli(), 10))
	h.Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-north-1:111122223333:function:duly")
	h.Set("Lambda-Runtime-Trace-Id", "Root=1-00000000-000000000000000000000000;Parent=0000000000000000;Sampled=0")
	_, _ = w.Write(i.event)
}

// One byte more than the limit is read, so that too much can be told from just enough.
func (e *Environment) response(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, MaxResponse+1))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if len(body) > MaxResponse {
		e.answer(w, r, Result{Failed: true, TooLarge: true}, http.StatusRequestEntityTooLarge)
		return
	}
	e.answer(w, r, Result{Payload: body}, http.StatusAccepted)
}

func (e *Environment) failure(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.answer(w, r, Result{Payload: body, Failed: true}, http.StatusAccepted)
}

// answer keeps the result of the invocation under way, of which there is one at most.
func (e *Environment) answer(w http.ResponseWriter, r *http.Request, result Result, status int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := e.current
	if i == nil || i.id != r.PathValue("id") || i.answered {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	result.TimedOut = i.result.TimedOut
	i.result, i.answered = result, true
	w.WriteHeader(status)
}

// It is kept until an invocation ends without an answer, and forgotten with the next start of the
// program.
func (e *Environment) failedInit(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	e.mu.Lock()
	e.initError = body
	e.mu.Unlock()
	w.WriteHeader(http.StatusAccepted)
}

// What it has registered for is not read: an environment has no events for extensions, and only counts
// them.
func (e *Environment) register(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Lambda-Extension-Name") == "" {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	e.extensions++
	e.mu.Unlock()
	w.Header().Set("Lambda-Extension-Identifier", "extension-1")
	_, _ = io.WriteString(w, `{"functionName":"duly","functionVersion":"$LATEST","handler":"bootstrap"}`)
}

// wait never answers: the extension has asked for no events.
func (e *Environment) wait(_ http.ResponseWriter, r *http.Request) {
	select {
	case <-e.closed:
	case <-r.Context().Done():
	}
}
