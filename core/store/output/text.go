package output

// Texts: what is kept of a run, put together.

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Text is what was kept of an output, as text.
type Text struct {
	Text string // valid UTF-8, with a line of duly where bytes were left out
	Left int64  // bytes that were left out
	End  int64  // bytes that the run has printed so far, as far as they were sent
	Last bool   // the run has ended: nothing follows
}

// Text is the output of the run from its byte after on, and at most the last Most bytes of it.
func (r *Run) Text(after int64) Text {
	var t Text
	for _, p := range r.Pieces {
		t.End, t.Last = max(t.End, p.At+int64(len(p.Data))), t.Last || p.Last
	}
	from := max(after, 0) // the next byte that is wanted
	first := max(from, t.End-Most)
	var b strings.Builder
	for _, p := range r.Pieces {
		data, at := p.Data, p.At
		// What was sent again, as an answer was lost, is shown once.
		if skip := max(from, first) - at; skip > 0 {
			data, at = data[min(skip, int64(len(data))):], at+skip
		}
		if len(data) == 0 {
			continue
		}
		if gap := at - from; gap > 0 {
			cut := begin(data)
			data, gap = data[cut:], gap+int64(cut)
			at += int64(cut)
			t.Left += gap
			leaveOut(&b, gap)
		}
		b.Write(data)
		from = at + int64(len(data))
	}
	text := b.String()
	if n := unfinished(text); n > 0 && !t.Last {
		text, t.End = text[:len(text)-n], t.End-int64(n)
	}
	t.Text = valid(text)
	return t
}

// unfinished is how many bytes at the end of a text are the beginning of a character whose rest has not come.
func unfinished(s string) int {
	for n := 1; n < utf8.UTFMax && n <= len(s); n++ {
		if rest := s[len(s)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRuneInString(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// leaveOut says how many bytes are missing, on a line of its own.
func leaveOut(b *strings.Builder, n int64) {
	if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "[duly: %d bytes left out]\n", n)
}

// begin is where a character begins, at the front of bytes that were cut anywhere.
func begin(data []byte) int {
	for i := range min(len(data), utf8.UTFMax-1) {
		if utf8.RuneStart(data[i]) {
			return i
		}
	}
	return 0
}

// valid is a text as valid UTF-8: each byte that is none is replaced.
func valid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		b.WriteRune(r)
	}
	return b.String()
}
