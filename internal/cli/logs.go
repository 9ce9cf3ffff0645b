package cli

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
)

// newLogger logs for people ("text") or for programs ("json").
func newLogger(w io.Writer, format string) (*slog.Logger, error) {
	switch format {
	case "text":
		return slog.New(&lineHandler{out: w, mu: new(sync.Mutex)}), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, nil)), nil
	default:
		return nil, usage("use text or json", "--log %q is unknown", format)
	}
}

// lineHandler writes a record as a line: the time of day, the level if it is not info, the message, key=value.
type lineHandler struct {
	out   io.Writer
	mu    *sync.Mutex
	attrs []slog.Attr
}

// Enabled is true from info on.
func (*lineHandler) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// WithAttrs is a handler that adds attributes.
func (h *lineHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	more := *h
	more.attrs = append(append([]slog.Attr(nil), h.attrs...), attrs...)
	return &more
}

// WithGroup is the same handler: nothing here logs in groups.
func (h *lineHandler) WithGroup(string) slog.Handler { return h }

// Handle writes one line.
func (h *lineHandler) Handle(_ context.Context, r slog.Record) error {
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

func writeAttr(b *bytes.Buffer, a slog.Attr) {
	b.WriteString(" " + a.Key + "=")
	v := a.Value.Resolve()
	if raw, ok := v.Any().(json.RawMessage); ok {
		b.WriteString(shortJSON(raw))
		return
	}
	text := v.String()
	if a.Key == "command" { // to be copied as it stands
		b.WriteString(plain(text))
		return
	}
	if text == "" || strings.ContainsFunc(text, func(r rune) bool { return r == ' ' || r == '"' || r == '=' || !unicode.IsPrint(r) }) {
		text = strconv.Quote(text)
	}
	b.WriteString(text)
}

// mostPayload is how much of a payload a line shows.
const mostPayload = 300

func shortJSON(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return strconv.Quote(string(raw))
	}
	if b.Len() > mostPayload {
		return fmt.Sprintf("%s... (%d bytes)", plain(strings.ToValidUTF8(b.String()[:mostPayload], "")), b.Len())
	}
	return plain(b.String())
}

// shellWord is a text as a shell takes it for one word.
func shellWord(text string) string {
	simple := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@+,%", r)
	}
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool { return !simple(r) }) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// plain escapes what a terminal could take for more than a text.
func plain(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		}
	}
	return b.String()
}
