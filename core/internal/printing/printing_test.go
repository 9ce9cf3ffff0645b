package printing_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/printing"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// press is a store that notes its calls, and fails as it is set.
type press struct {
	*memstore.Store

	mu    sync.Mutex
	calls [][]output.Chunk
	fails error         // nothing is stored
	loses error         // it is stored, and the answer is lost
	holds chan struct{} // a call waits for it
}

func (p *press) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	p.mu.Lock()
	p.calls = append(p.calls, chunks)
	fails, loses, holds := p.fails, p.loses, p.holds
	p.mu.Unlock()
	if holds != nil {
		<-holds
	}
	if fails != nil {
		return nil, fails
	}
	errs, err := p.Store.Print(ctx, chunks)
	if loses != nil {
		return nil, loses
	}
	return errs, err
}

func (p *press) set(fails, loses error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fails, p.loses = fails, loses
}

// count is how many calls there were, and how many bytes they had.
func (p *press) count() (calls, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, chunks := range p.calls {
		for i := range chunks {
			size += len(chunks[i].Data)
		}
	}
	return len(p.calls), size
}

// text is what is kept of the last run of a task.
func (s *shop) text(id string) output.Text {
	s.Helper()
	runs, err := s.Printed(s.Context(), "ada", id)
	require.NoError(s, err)
	if len(runs) == 0 {
		return output.Text{}
	}
	return runs[0].Text(0)
}

func about(id string, fence store.Fence) func() output.Chunk {
	return func() output.Chunk { return output.Chunk{Agent: "ada", ID: id, Fence: fence, Attempt: 1} }
}

// shop is a sender with its store.
type shop struct {
	*testing.T
	*press
	*printing.Sender
}

// virtual runs a test in virtual time.
func virtual(t *testing.T, test func(s *shop)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &press{Store: memstore.New(memstore.Config{})}
		test(&shop{t, p, printing.New(p, model.SystemClock{})})
	})
}

// after lets time pass, and everything happen that is due then.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// While runs go on, what all of them have printed is one call a second; a run that ends is sent at once, with its end.
func TestOutputIsSentOnceASecond(t *testing.T) {
	virtual(t, func(s *shop) {
		for range 10 {
			for id := range 5 {
				_, _ = fmt.Fprintf(s.Of(id, about(fmt.Sprint(id), 1)), "line\n")
			}
			after(100 * time.Millisecond)
		}
		calls, _ := s.count()
		assert.Equal(s, 1, calls)
		assert.Equal(s, output.Text{Text: strings.Repeat("line\n", 10), End: 50}, s.text("0"))
		after(time.Hour)
		calls, _ = s.count()
		assert.Equal(s, 1, calls, "nothing was printed since")
		_, _ = s.Of(0, nil).Write([]byte("end\n"))
		s.End(0, false)
		after(0)
		calls, _ = s.count()
		assert.Equal(s, 2, calls)
		assert.Equal(s, output.Text{Text: strings.Repeat("line\n", 10) + "end\n", End: 54, Last: true}, s.text("0"))
		s.End(1, false)
		after(0)
		assert.True(s, s.text("1").Last, "its end is known also where nothing was left to send")
		after(time.Hour)
		calls, _ = s.count()
		assert.Equal(s, 3, calls)
	})
}

// A run that prints nothing sends nothing, and one that ends within a second sends once.
func TestAShortRunIsSentOnce(t *testing.T) {
	virtual(t, func(s *shop) {
		s.Of("silent", about("silent", 1))
		s.End("silent", false)
		s.End("unknown", false)
		s.Flush(time.Hour)
		calls, _ := s.count()
		assert.Zero(s, calls)
		r := s.Of("short", about("short", 1))
		_, _ = r.Write([]byte("a"))
		_, _ = r.Write([]byte("b"))
		s.End("short", false)
		s.Flush(time.Hour)
		assert.Equal(s, output.Text{Text: "ab", End: 2, Last: true}, s.text("short"), "who waits finds it")
		_, _ = r.Write([]byte("of a handler that was given up"))
		after(time.Hour)
		calls, _ = s.count()
		assert.Equal(s, 1, calls)
		assert.Equal(s, "ab", s.text("short").Text)
	})
}

// A run that ends after its turn has come, and before its chunk is taken, is sent once with its end.
func TestARunEndsWhileItsTurnComes(t *testing.T) {
	virtual(t, func(s *shop) {
		held := make(chan struct{})
		s.mu.Lock()
		s.holds = held
		s.mu.Unlock()
		for id := range 20 { // more than one call takes
			_, _ = s.Of(id, about(fmt.Sprint(id), 1)).Write(bytes.Repeat([]byte("x"), output.Most))
		}
		after(time.Second)
		calls, _ := s.count()
		require.Equal(s, 1, calls, "the others wait for it")
		for id := range 20 {
			s.End(id, false)
		}
		close(held)
		s.Flush(time.Hour)
		after(time.Hour)
		for id := range 20 {
			assert.True(s, s.text(fmt.Sprint(id)).Last, id)
		}
		calls, size := s.count()
		assert.Equal(s, 3, calls, "and the ends of those of the first")
		assert.Equal(s, 20*output.Most, size, "nothing is sent twice")
	})
}

// Of a flood the last bytes are kept, in the process and in the store, and it is said how many were left out.
func TestAFloodIsCut(t *testing.T) {
	virtual(t, func(s *shop) {
		r := s.Of(1, about("1", 1))
		line := bytes.Repeat([]byte("0123456789abcde\n"), 64) // 1 KiB
		const seconds, each = 20, 1 << 10
		for range seconds {
			for range each {
				_, _ = r.Write(line)
			}
			after(printing.Every)
		}
		_, size := s.count()
		assert.LessOrEqual(s, size, (seconds+1)*output.Most)
		_, _ = r.Write([]byte("end\n"))
		_, _ = r.Write(bytes.Repeat([]byte("x"), 3*output.Most))
		s.End(1, false)
		s.Flush(time.Second)
		text := s.text("1")
		const all = seconds*each<<10 + 4 + 3*output.Most
		assert.Equal(s, int64(all), text.End)
		assert.Equal(s, int64(all-output.Most), text.Left)
		assert.Equal(s, fmt.Sprintf("[duly: %d bytes left out]\n", all-output.Most)+strings.Repeat("x", output.Most), text.Text)
		kept := 0
		runs, err := s.Printed(s.Context(), "ada", "1")
		require.NoError(s, err)
		for _, piece := range runs[0].Pieces {
			kept += len(piece.Data)
		}
		assert.LessOrEqual(s, kept, 2*output.Most, "the store has no more than a chunk beyond the most")
	})
}

// A run that prints little for long has few chunks in the store, and all of its text.
func TestManySmallChunksBecomeOne(t *testing.T) {
	virtual(t, func(s *shop) {
		r, want := s.Of(1, about("1", 1)), ""
		for i := range 1000 {
			line := fmt.Sprintf("line %d\n", i)
			want += line
			_, _ = r.Write([]byte(line))
			after(printing.Every)
			runs, err := s.Printed(s.Context(), "ada", "1")
			require.NoError(s, err)
			require.LessOrEqual(s, len(runs[0].Pieces), output.MostChunks)
		}
		assert.Equal(s, output.Text{Text: want, End: int64(len(want))}, s.text("1"))
	})
}

// What could not be sent is sent later, once, as far as it is kept; the run that has ended waits for nothing.
func TestAStoreThatIsAway(t *testing.T) {
	for name, set := range map[string]func(p *press, err error){
		"nothing arrives": func(p *press, err error) { p.set(err, nil) },
		"answers are lost": func(p *press, err error) {
			p.set(nil, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			virtual(t, func(s *shop) {
				set(s.press, errors.New("away"))
				goes, ends := s.Of(1, about("goes", 1)), s.Of(2, about("ends", 1))
				_, _ = goes.Write([]byte("one,"))
				_, _ = ends.Write([]byte("end"))
				s.End(2, false)
				after(10 * time.Second)
				begun := time.Now()
				s.Flush(time.Second)
				assert.Zero(s, time.Since(begun), "a pull does not wait for a store that is away")
				calls, _ := s.count()
				assert.Less(s, calls, 8, "longer and longer pauses")
				_, _ = goes.Write([]byte("two,"))
				set(s.press, nil)
				after(20 * time.Second)
				_, _ = goes.Write([]byte("three"))
				after(printing.Every)
				assert.Equal(s, output.Text{Text: "one,two,three", End: 13}, s.text("goes"))
				assert.Equal(s, output.Text{Text: "end", End: 3, Last: true}, s.text("ends"))
			})
		})
	}
}

// A store that stays away costs bounded memory: ends are given up, and what comes later is sent.
func TestEndsAreGivenUp(t *testing.T) {
	virtual(t, func(s *shop) {
		s.set(errors.New("away"), nil)
		for i := range 1000 {
			_, _ = s.Of(i, about(fmt.Sprint(i), 1)).Write([]byte("x"))
			s.End(i, false)
		}
		after(time.Hour)
		calls, _ := s.count()
		assert.Less(s, calls, 20)
		s.set(nil, nil)
		_, _ = s.Of("later", about("later", 1)).Write([]byte("x"))
		s.End("later", false)
		after(time.Minute)
		assert.Equal(s, "x", s.text("later").Text)
		assert.Empty(s, s.text("1").Text)
	})
}

// A run that was taken over sends nothing more, and its end is waited for by nobody.
func TestARunThatWasTakenOver(t *testing.T) {
	virtual(t, func(s *shop) {
		old := s.Of("old", about("1", 1))
		_, _ = s.Of("new", about("1", 2)).Write([]byte("new"))
		after(printing.Every)
		for range 3 {
			_, _ = old.Write([]byte("old"))
			after(printing.Every)
		}
		calls, _ := s.count()
		assert.Equal(s, 2, calls)
		s.End("old", false)
		s.Flush(time.Hour)
		lost := s.Of("lost", about("2", 1))
		_, _ = lost.Write([]byte("lost"))
		s.End("lost", true)
		s.Flush(time.Hour)
		after(time.Hour)
		assert.Equal(s, "new", s.text("1").Text)
		assert.Empty(s, s.text("2"))
	})
}

// While a call is under way others print and end, and nothing is sent twice or lost.
func TestWritesDuringACall(t *testing.T) {
	virtual(t, func(s *shop) {
		s.holds = make(chan struct{})
		a, b := s.Of("a", about("a", 1)), s.Of("b", about("b", 1))
		_, _ = a.Write([]byte("1"))
		_, _ = b.Write([]byte("1"))
		after(printing.Every)
		_, _ = a.Write([]byte("2"))
		_, _ = b.Write([]byte("2"))
		s.End("b", false)
		flushed := make(chan struct{})
		go func() { s.Flush(time.Hour); close(flushed) }()
		synctest.Wait()
		close(s.holds)
		<-flushed
		assert.Equal(s, output.Text{Text: "12", End: 2, Last: true}, s.text("b"))
		after(printing.Every)
		assert.Equal(s, output.Text{Text: "12", End: 2}, s.text("a"))
		_, size := s.count()
		assert.Equal(s, 4, size)
	})
}

// Many goroutines print to many runs, which end: each text is whole.
func TestOutputIsSafeForConcurrentUse(t *testing.T) {
	virtual(t, func(s *shop) {
		var all sync.WaitGroup
		for id := range 50 {
			all.Go(func() {
				var lines sync.WaitGroup
				for range 4 {
					lines.Go(func() {
						for range 20 {
							_, _ = s.Of(id, about(fmt.Sprint(id), 1)).Write([]byte("line\n"))
							time.Sleep(77 * time.Millisecond)
						}
					})
				}
				lines.Wait()
				s.End(id, false)
			})
		}
		all.Wait()
		s.Flush(time.Second)
		for id := range 50 {
			assert.Equal(s, output.Text{Text: strings.Repeat("line\n", 80), End: 400, Last: true}, s.text(fmt.Sprint(id)))
		}
	})
}
