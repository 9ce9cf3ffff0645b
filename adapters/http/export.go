package http

// Exports and imports: all of an agent as lines of JSON, a page at a time.

import (
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"slices"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/operate"
)

// mediaLines is the media type of lines of JSON.
const mediaLines = "application/x-ndjson"

// export streams all of an agent. A failure after the first page cuts the connection: an export that ends as if it were whole would be
// taken for one.
func (a *api) export(w http.ResponseWriter, r *http.Request) {
	if _, err := query(r); err != nil {
		a.refuse(w, r, err)
		return
	}
	lines := &pages{w: w, control: http.NewResponseController(w), clock: a.config.Clock}
	_, err := a.scheduler.Export(r.Context(), r.PathValue("agent"), lines)
	switch {
	case err == nil:
	case !lines.begun:
		if core.CodeOf(err) == core.CodeNotFound {
			err = problem.New(core.CodeNotFound, "the agent has no live task, no profile and no pause")
		}
		a.refuse(w, r, err)
	default:
		a.config.Logger.LogAttrs(r.Context(), slog.LevelWarn, "an export was cut off", slog.Any("err", err))
		panic(http.ErrAbortHandler)
	}
}

// pages are those of an answer. The client has a time for each.
type pages struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   core.Clock
	begun   bool
}

// Write sends a page.
func (p *pages) Write(page []byte) (int, error) {
	if !p.begun {
		p.begun = true
		p.w.Header().Set("Content-Type", mediaLines)
		p.w.WriteHeader(http.StatusOK)
	}
	_ = p.control.SetWriteDeadline(p.clock.Now().Add(writeTimeout)) // not every writer has one
	return p.w.Write(page)
}

// imports stores exported tasks for the agent of the path, regardless of the agent in the lines. Lines that are wrong are part of the answer.
func (a *api) imports(r *http.Request, lines io.Reader) (operate.Imported, error) {
	return a.scheduler.Import(r.Context(), r.PathValue("agent"), lines)
}

// linesOf are the lines of JSON of a request.
func linesOf(r *http.Request) (io.Reader, error) {
	if _, err := query(r); err != nil {
		return nil, err
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || !slices.Contains([]string{mediaLines, "application/jsonl"}, media) {
		return nil, problem.New(problem.CodeMediaType, "the body must be "+mediaLines)
	}
	return body{r.Body}, nil
}

// body is the body of a request, with errors in the form of the answer.
type body struct{ io.Reader }

// Read reads of it.
func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = requestbody.Problem(err)
	}
	return n, err
}
