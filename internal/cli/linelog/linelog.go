// Package linelog writes log records as lines for people.
package linelog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Handler writes a record as a line: the time of day, the level if it is not info, the message, key=value. Make it with [New].
type Handler struct {
	out io.Writer
	// mu is shared by the copies that WithAttrs makes: all of them write to the same place.
	mu    *sync.Mutex
	attrs []slog.Attr
}

// New makes a handler that writes to out, one line at a time.
func New(out io.Writer) *Handler { return &Handler{out: out, mu: new(sync.Mutex)} }

// Enabled is true from info on.
// Debug records are never written.
func (*Handler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithAttrs is a handler that adds attributes.
// The slice is copied: two loggers made from one must not share its spare capacity.
func (h *Handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &more
}

// WithGroup is the same handler: nothing here logs in groups.
func (h *Handler) WithGroup(string) slog.Handler { return h }

// Handle writes one line.
// The line is made in full before the lock, so that loggers wait for writing only.
func (h *Handler) Handle(_ context.Context, r slog.Record) error {
	var b bytes.Buffer
	b.WriteString(r.Time.Format("15:04:05.000 "))
	if r.Level != slog.LevelInfo {
		b.WriteString(r.Level.String() + " ")
	}
	b.WriteString(r.Message)
	for _, a := range h.attrs {
		writeAttr(&b, a)
	}
	r.Attrs(func(a slog.Attr) bool { writeAttr(&b, a); return true })
	b.WriteByte('\n')
	h.mu.Lock()
	defer h.mu.Unlock()
	_, err := h.out.Write(b.Bytes())
	return err
}

// writeAttr writes one attribute, quoted if it would not be read back as one word.
func writeAttr(b *bytes.Buffer, a slog.Attr) {
	b.WriteString(" " + a.Key + "=")
	v := a.Value.Resolve()
	if raw, ok := v.Any().(json.RawMessage); ok {
		b.WriteString(shortJSON(raw))
		return
	}
	text := v.String()
	if a.Key == "command" { // it is meant to be copied
		b.WriteString(table.Plain(text))
		return
	}
	// What looks like a separator, or could move a cursor, is quoted. A byte that is no UTF-8 is one too: some terminals take
	// those from 0x80 on for controls.
	if text == "" || !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	b.WriteString(text)
}

// mostPayload is how much of a payload a line shows.
// A line of a log should fit into a terminal; the whole payload is in the store.
const mostPayload = 300

// shortJSON is a payload on one line, cut off after mostPayload bytes, with its whole length.
func shortJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return strconv.Quote(string(raw))
	}
	if b.Len() > mostPayload {
		return fmt.Sprintf("%s... (%d bytes)", table.Plain(strings.ToValidUTF8(b.String()[:mostPayload], "")), b.Len())
	}
	return table.Plain(b.String())
}
