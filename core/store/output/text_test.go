package output_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/store/output"
)

func TestText(t *testing.T) {
	t.Parallel()
	piece := func(at int64, data string) output.Piece { return output.Piece{At: at, Data: []byte(data)} }
	last := piece(6, "c\n")
	last.Last = true
	for _, c := range []struct {
		name   string
		pieces []output.Piece
		after  int64
		want   output.Text
	}{
		{name: "nothing"},
		{name: "in order", pieces: []output.Piece{piece(0, "a\n"), piece(2, "b\n")}, want: output.Text{Text: "a\nb\n", End: 4}},
		{name: "the end", pieces: []output.Piece{piece(4, "b\n"), last}, want: output.Text{Text: "[duly: 4 bytes left out]\nb\nc\n", Left: 4, End: 8, Last: true}},
		{name: "sent twice", pieces: []output.Piece{piece(0, "ab"), piece(0, "abc"), piece(3, "d")}, want: output.Text{Text: "abcd", End: 4}},
		{name: "a gap", pieces: []output.Piece{piece(0, "ab"), piece(10, "c")}, want: output.Text{Text: "ab\n[duly: 8 bytes left out]\nc", Left: 8, End: 11}},
		{name: "a gap within a character", pieces: []output.Piece{piece(3, "\x82\xacx")}, want: output.Text{Text: "[duly: 5 bytes left out]\nx", Left: 5, End: 6}},
		{name: "what follows", pieces: []output.Piece{piece(0, "ab"), piece(2, "cd")}, after: 3, want: output.Text{Text: "d", End: 4}},
		{name: "nothing follows", pieces: []output.Piece{piece(0, "ab")}, after: 2, want: output.Text{End: 2}},
		{name: "what follows is behind a gap", pieces: []output.Piece{piece(0, "ab"), piece(5, "c")}, after: 2, want: output.Text{Text: "[duly: 3 bytes left out]\nc", Left: 3, End: 6}},
		{name: "half a character", pieces: []output.Piece{piece(0, "a\xe2\x82")}, want: output.Text{Text: "a", End: 1}},
		{name: "its other half", pieces: []output.Piece{piece(0, "a\xe2\x82"), piece(3, "\xacb")}, after: 1, want: output.Text{Text: "€b", End: 5}},
		{name: "no text", pieces: []output.Piece{piece(0, "a\xffb\x00")}, want: output.Text{Text: "a\ufffdb\x00", End: 4}},
	} {
		run := output.Run{Pieces: c.pieces}
		assert.Equal(t, c.want, run.Text(c.after), c.name)
	}
}

// More than the most is kept up to a chunk, and shown to the byte.
func TestTextHasTheLastBytes(t *testing.T) {
	t.Parallel()
	run := output.Run{Pieces: []output.Piece{{Data: bytes.Repeat([]byte("x"), output.Most)}, {At: output.Most, Data: []byte("end\n")}}}
	text := run.Text(0)
	assert.Equal(t, int64(4), text.Left)
	assert.Equal(t, "[duly: 4 bytes left out]\n"+strings.Repeat("x", output.Most-4)+"end\n", text.Text)
}
