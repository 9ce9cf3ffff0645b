package memstore

// The output of runs.

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// output.Keeper is optional for a store; this line has the compiler check it.
var _ output.Keeper = (*Store)(nil)

// outputs are those of all agents: a part of the store, which has its lock and its clock.
type outputs struct {
	of       *Store                         `image:"-"`
	ofAgents map[string]map[string]*printed // by place
	count    int
	full     int // so many are cleaned up
}

// printed is the output of a run.
type printed struct {
	run    output.Run
	number int64   // of its last chunk
	chunks []int64 // the number of each piece
	until  moment.Millis
}

// placeOf is where the output of a run of a task is, among those of its agent.
func placeOf(id string, place int) string { return strconv.Itoa(place) + ":" + id }

// Print adds chunks; see [output.Keeper].
func (s *outputs) Print(ctx context.Context, chunks []output.Chunk) ([]error, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "print", Err: err}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	now, errs := s.of.now(), make([]error, len(chunks))
	for i := range chunks {
		errs[i] = s.print(&chunks[i], now)
	}
	return errs, nil
}

func (s *outputs) print(c *output.Chunk, now moment.Millis) error {
	of := s.ofAgents[c.Agent]
	if of == nil {
		of = map[string]*printed{}
		s.ofAgents[c.Agent] = of
	}
	place := placeOf(c.ID, c.Place())
	p := of[place]
	if p != nil && p.until <= now {
		delete(of, place)
		p, s.count = nil, s.count-1
	}
	// guard: output-fence-in-memory
	if p != nil && (c.Fence < p.run.Fence || c.Fence == p.run.Fence && c.Number <= p.number) {
		return store.ErrLeaseLost
	}
	if p == nil {
		s.sweep(now)
		p = &printed{}
		of[place] = p
		s.ofAgents[c.Agent] = of
		s.count++
	}
	// guard: output-begins
	if p.run.Fence != c.Fence {
		*p = printed{run: output.Run{Fence: c.Fence}}
	}
	p.run.Attempt, p.run.Claimed = c.Attempt, c.Claimed
	dropped := 0
	// guard: output-bound-in-memory
	for dropped < len(p.chunks) && (p.chunks[dropped] < c.Keep || c.Bound && len(p.chunks)-dropped >= output.MostChunks) {
		dropped++
	}
	piece := c.Piece
	piece.Data = slices.Clone(piece.Data)
	p.run.Pieces, p.chunks = append(p.run.Pieces[dropped:], piece), append(p.chunks[dropped:], c.Number)
	p.number, p.until = c.Number, now.Add(s.of.config.Retention)
	if c.Whole() && len(of) > output.MostRuns {
		s.trim(of)
	}
	return nil
}

// trim drops the oldest outputs of an agent that has too many.
func (s *outputs) trim(of map[string]*printed) {
	places := slices.SortedFunc(maps.Keys(of), func(a, b string) int {
		return cmp.Or(cmp.Compare(of[a].run.Claimed, of[b].run.Claimed), cmp.Compare(a, b))
	})
	for _, place := range places[:len(places)-output.MostRuns] {
		delete(of, place)
		s.count--
	}
}

// sweep drops what was kept long enough, once there is twice as much as before.
func (s *outputs) sweep(now moment.Millis) {
	if s.count < s.full {
		return
	}
	for agent, of := range s.ofAgents {
		before := len(of)
		maps.DeleteFunc(of, func(_ string, p *printed) bool { return p.until <= now })
		s.count -= before - len(of)
		if len(of) == 0 {
			delete(s.ofAgents, agent)
		}
	}
	s.full = max(leastReceipts, 2*s.count)
}

// Printed returns what is kept of a task; see [output.Keeper].
func (s *outputs) Printed(ctx context.Context, agent, id string) ([]output.Run, error) {
	if err := ctx.Err(); err != nil {
		return nil, &store.Error{Verb: "read", Err: err}
	}
	s.of.mu.Lock()
	defer s.of.mu.Unlock()
	var runs []output.Run
	for place := range 2 {
		if p := s.ofAgents[agent][placeOf(id, place)]; p != nil && p.until > s.of.now() {
			run := p.run
			run.Pieces = slices.Clone(run.Pieces)
			for i := range run.Pieces {
				run.Pieces[i].Data = slices.Clone(run.Pieces[i].Data)
			}
			runs = append(runs, run)
		}
	}
	slices.SortFunc(runs, func(a, b output.Run) int { return cmp.Compare(b.Fence, a.Fence) })
	return runs, nil
}

// forgetOutput forgets the output of a task. The lock is held.
func (s *outputs) forgetOutput(agent, id string) {
	of := s.ofAgents[agent]
	for place := range 2 {
		// guard: output-deleted-in-memory
		if name := placeOf(id, place); of[name] != nil {
			delete(of, name)
			s.count--
		}
	}
	if len(of) == 0 {
		delete(s.ofAgents, agent)
	}
}
