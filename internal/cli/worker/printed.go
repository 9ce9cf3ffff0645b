package worker

// What a run prints: its end is kept until the server has it.

import (
	"encoding/json"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// printed is the output of a run: an [io.Writer] that never fails and waits for nothing.
type printed struct {
	news func() // there is something to be sent

	mu     sync.Mutex
	tail   []byte // the last bytes, output.Most at least if there are as many
	end    int64  // bytes in all
	stored int64  // bytes that the server has
	told   bool   // news of it are on the way
	sent   int    // pieces since all was sent that is kept
}

const (
	// mostPieces are so many pieces that a store still keeps them all.
	mostPieces = output.MostChunks / 2
	// mostPiece is how long a piece is at most as JSON, which writes some characters by six. A longer one loses its beginning.
	mostPiece = 2 * output.Most
)

// Write adds what the run prints.
func (p *printed) Write(data []byte) (int, error) {
	if len(data) == 0 {
		return 0, nil
	}
	p.mu.Lock()
	p.tail = append(p.tail, data...)
	if over := len(p.tail) - output.Most; over > output.Most {
		p.tail = append(p.tail[:0], p.tail[over:]...)
	}
	p.end += int64(len(data))
	if !p.told { // it goes with what follows within a moment
		p.told = true
		time.AfterFunc(together, p.news)
	}
	p.mu.Unlock()
	return len(data), nil
}

// piece is what is to be sent; nil for nothing. The last has what is left, or an end alone: it is nil for a run that has printed nothing. A character
// whose rest has not come waits for that.
func (p *printed) piece(last bool) *output.Sent {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = false
	if p.end == 0 || !last && p.stored == p.end {
		return nil
	}
	from := max(p.stored, p.end-output.Most)
	if p.sent >= mostPieces || p.end-from > output.Part { // it takes the place of all
		from, p.sent = max(p.end-output.Most, 0), 0
	}
	data := p.tail[int64(len(p.tail))-(p.end-from):]
	if !last {
		data = data[:len(data)-unfinished(data)]
	}
	if len(data) == 0 && !last {
		return nil
	}
	p.sent++
	return fitting(from, sameLength(data))
}

// unfinished is how many bytes at the end are the beginning of a character whose rest has not come.
func unfinished(data []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if rest := data[len(data)-n:]; utf8.RuneStart(rest[0]) {
			if utf8.FullRune(rest) {
				return 0
			}
			return n
		}
	}
	return 0
}

// fitting is a piece without the beginning that makes it too long.
func fitting(at int64, text string) *output.Sent {
	for {
		if data, err := json.Marshal(text); err == nil && len(data) <= mostPiece {
			return &output.Sent{At: at, Text: text}
		}
		cut := len(text) / 2
		for !utf8.RuneStart(text[cut]) {
			cut++
		}
		at, text = at+int64(cut), text[cut:]
	}
}

// sameLength is data as valid UTF-8 of as many bytes, as places in an output count bytes.
func sameLength(data []byte) string {
	if utf8.Valid(data) {
		return string(data)
	}
	var b strings.Builder
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		if r == utf8.RuneError && n == 1 {
			b.WriteByte('?')
		} else {
			b.Write(data[:n])
		}
		data = data[n:]
	}
	return b.String()
}

// size is how long the last piece is at most, as JSON.
func (p *printed) size() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return escaped(int(min(p.end-p.stored, output.Most)))
}

// escaped is how long a piece of n bytes is at most, as JSON.
func escaped(n int) int { return min(6*n, mostPiece) }

// took notes how much the server has.
func (p *printed) took(stored int64) {
	p.mu.Lock()
	p.stored = max(p.stored, min(stored, p.end))
	p.mu.Unlock()
}
