package redisstore

// Permits: a run under a limit or a budget that spans partitions takes one from the home of its bucket before it starts. See permit.lua and
// docs/decisions/0043-limits-over-partitions.md.

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// permits is what this process knows of buckets that span partitions. It only decides when to ask: homes decide who starts.
type permits struct {
	met atomic.Bool // whether there are any, as far as is known
	mu  sync.Mutex
	of  map[bucketIn]*line
	// clocks has the last time that each partition reported.
	clocks map[int]clockReading
}

// bucketIn is a bucket as one partition has it.
type bucketIn struct {
	partition int
	bucket    string
}

// line is the line of one partition for permits of a bucket.
type line struct {
	wants    int64     // how many could start with them
	number   int64     // of the last permit that the partition knows
	back     int64     // of the last one that it has given back
	reported int64     // of the last one that was reported to the home as returned
	unused   string    // what the home last received about permits that were not used
	after    time.Time // when to ask again
	asking   bool      // a call is asking
}

// clockReading is the time on the clock of a server, and a time by which it had certainly been read.
type clockReading struct {
	store moment.Millis
	at    time.Time
}

// report is what is sent to the home of a bucket, and asked of it: see permit.lua.
type report struct {
	bucketIn

	number, back, wants  int64
	unused, answer, used string
}

// args are its arguments.
func (r *report) args() []any {
	return []any{r.bucket, r.partition, r.number, r.back, r.wants, r.unused, r.answer, r.used}
}

// of is the line of a bucket. The mutex is held.
func (p *permits) line(in bucketIn) *line {
	if p.of == nil {
		p.of, p.clocks = map[bucketIn]*line{}, map[int]clockReading{}
	}
	l := p.of[in]
	if l == nil {
		l = &line{}
		p.of[in] = l
	}
	return l
}

// mostLines is how many lines are kept in mind; those of which nothing is known that matters are forgotten then.
const mostLines = 10_000

// forget makes room. The mutex is held.
func (p *permits) forget() {
	if len(p.of) < mostLines {
		return
	}
	for in, l := range p.of {
		if l.wants == 0 && !l.asking {
			delete(p.of, in)
		}
	}
}

// spannedFields is how many fields a claim has for each bucket that spans partitions.
const spannedFields = 5

// claimed learns from what a claim reports about such buckets (see span.told), and adds to reports what their homes have to know. It returns whether
// tasks wait for permits. If the claim came without any, those lines may ask at once.
func (p *permits) claimed(partition int, said []any, reports []report, brought bool) ([]report, bool) {
	if len(said) == 0 {
		return reports, false
	}
	p.met.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	waits := false
	for i := 0; i+spannedFields <= len(said); i += spannedFields {
		in := bucketIn{partition, layout.Text(said[i])}
		l := p.line(in)
		l.wants, l.number, l.back = layout.Number(said[i+1]), max(l.number, layout.Int(layout.Text(said[i+2]))), max(l.back, layout.Int(layout.Text(said[i+3])))
		if l.wants > 0 && !brought {
			l.after = time.Time{}
		}
		waits = waits || l.wants > 0
		unused := layout.Text(said[i+4])
		if l.back > l.reported || unused != l.unused {
			l.reported, l.unused = max(l.reported, l.back), unused
			reports = append(reports, report{bucketIn: in, number: l.number, back: l.back, unused: unused})
		}
	}
	return reports, waits
}

// settledFields is how many fields a settlement has for each run and bucket.
const settledFields = 5

// settled adds to reports what a settlement reports about such buckets; see after_run.
func (p *permits) settled(partition int, said []any, reports []report) []report {
	if len(said) == 0 {
		return reports
	}
	p.met.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.forget()
	for i := 0; i+settledFields <= len(said); i += settledFields {
		r := report{
			bucketIn: bucketIn{partition, layout.Text(said[i])}, number: layout.Int(layout.Text(said[i+1])), back: layout.Int(layout.Text(said[i+2])),
			answer: layout.Text(said[i+3]), used: layout.Text(said[i+4]),
		}
		l := p.line(r.bucketIn)
		l.number, l.back, l.reported = max(l.number, r.number), max(l.back, r.back), max(l.reported, r.back)
		reports = append(reports, r)
	}
	return reports
}

// waiting are the requests for partitions in which tasks wait for permits that may be asked for now.
func (p *permits) waiting(requests []store.ClaimRequest) []int {
	if !p.met.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	ask := map[int]bool{}
	now := time.Now() //nolint:forbidigo // only paces this process: homes decide
	for in, l := range p.of {
		if l.wants > 0 && !l.asking && !now.Before(l.after) {
			ask[in.partition] = true
		}
	}
	var out []int
	for i := range requests {
		if ask[requests[i].Partition] && requests[i].New == nil && requests[i].Limit > 0 {
			out = append(out, i)
		}
	}
	return out
}

// questions are the questions of requests to the homes of the buckets that their partitions wait for. Others do not ask for them until done.
func (p *permits) questions(requests []store.ClaimRequest, of []int) (ask []report, done func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	room := map[int]int64{}
	for _, i := range of {
		room[requests[i].Partition] = int64(requests[i].Limit)
	}
	now := time.Now() //nolint:forbidigo // as in waiting
	var mine []*line
	for in, l := range p.of {
		n, asked := room[in.partition]
		if !asked || l.wants <= 0 || l.asking || now.Before(l.after) {
			continue
		}
		l.asking, mine = true, append(mine, l)
		l.reported = max(l.reported, l.back)
		ask = append(ask, report{bucketIn: in, number: l.number, back: l.back, wants: min(l.wants, n)})
	}
	return ask, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, l := range mine {
			l.asking = false
		}
	}
}

// told notes when to ask again for a bucket.
func (p *permits) told(in bucketIn, wait time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(in).after = time.Now().Add(wait) //nolint:forbidigo // as in waiting
}

// woken notes that tasks in a partition may have permits now.
func (p *permits) woken(in bucketIn, wants int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.line(in)
	l.wants, l.after = max(l.wants, wants, 1), time.Time{}
}

// heard notes the time in a partition.
func (p *permits) heard(partition int, now moment.Millis) {
	if !p.met.Load() || now == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(bucketIn{partition: -1})                                // so that there is a map
	p.clocks[partition] = clockReading{store: now, at: time.Now()} //nolint:forbidigo // how much later it is now, not what time
}

// until is by when, on the clock of a partition, something is over that is good for a while from some time on, at the latest: for any difference
// between the servers' clocks. It is long over where that is not known.
func (p *permits) until(partition int, from time.Time, good time.Duration) moment.Millis {
	p.mu.Lock()
	defer p.mu.Unlock()
	last, known := p.clocks[partition]
	if !known {
		return 1
	}
	return last.store.Add(from.Sub(last.at) + good)
}

// brought are lines for span.take, by partition.
type brought map[int]string

// add adds one for a partition.
func (b brought) add(in bucketIn, number, n int64, wait time.Duration, until moment.Millis, first string) {
	b[in.partition] += fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%s\n", in.bucket, number, n, wait.Milliseconds(), until, first)
}
