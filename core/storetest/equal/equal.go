// Package equal drives two stores with the same random calls and demands the same answers.
package equal

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// Stores drives two stores with the same random calls and demands the same answers. Both must be empty, have the same
// options, and be at the time of clock. The choices come from data, a byte for each; it returns the number of calls.
//
// Only what a store may choose freely is not compared: the numbers of fences, and a look's answer, which may be too
// early but never too late.
// Every disagreement is a fault in one of the two stores, most often in the one that is not the
// reference. A failure names the call, and the same data repeats it.
func Stores(t *testing.T, clock *given.Clock, a, b store.Store, data []byte) int {
	t.Helper()
	d := &driver{T: t, draw: draw{clock: clock, data: data, partitions: a.Partitions()}, a: a, b: b, fences: fences{}}
	if len(data) > 0 {
		d.tame, d.ids = data[0]%2 == 1, []int{40, 40, 3}[int(data[0])/2%3]
	}
	calls := 0
	for len(d.data) > 0 {
		d.step()
		calls++
	}
	d.finish()
	return calls
}

// driver has both stores, and what it remembers of them to make sensible calls.
type driver struct {
	*testing.T
	draw

	a, b   store.Store
	fences fences
	claims []store.ClaimRequest // made so far
	runs   []store.Claimed      // claimed so far, with the fences of a
	dead   []store.Submission
	nonces int
}

// Ids sort the same whether encoded for keys or not, as ties in a store's order may go by either.
// Few of each, so that calls meet the same tasks again and again.
var (
	agents = []string{"a", "b", "c", "d", "e{}", "f:g"}
	kinds  = []string{"k0", "k1", "k2"}
	groups = []string{"", "", "g", "h:1"}
	keys   = []string{"", "", "key", "k:{}"}
)

// step makes one call. The numbers are weights: most calls submit, claim and settle.
func (d *driver) step() {
	switch c := d.pick(24); {
	case c < 5:
		d.submit()
	case c < 9:
		d.claim()
	case c == 9:
		if d.pick(2) == 0 {
			d.claim()
			return
		}
		d.start()
	case c < 15:
		d.settle()
	case c == 15:
		d.extend()
	case c == 16 && d.pick(2) == 0:
		d.signal()
	case c == 16:
		d.replay()
	case c == 17:
		d.read()
	case c < 22 && d.mostly():
		d.settle()
	case c == 18:
		d.touch()
	case c < 21:
		d.order()
	case c == 21:
		if d.pick(3) == 0 {
			d.limit()
			return
		}
		if d.pick(3) == 0 {
			d.profile()
			return
		}
		if d.pick(3) == 0 {
			d.crowd()
			return
		}
		d.receive()
		d.printing()
		d.hold()
	default:
		d.advance()
	}
}

// submit submits a few tasks, some with a rule for those that exist.
func (d *driver) submit() {
	var subs []store.Submission
	seen := map[string]bool{}
	for range 1 + d.pick(6) {
		s := d.submission()
		switch d.pick(12) {
		case 0:
			s.Conflict = store.ConflictFail
		case 4:
			s.Owed = true
		case 5:
			s.Owed, s.Conflict, s.OldGroup = true, store.ConflictReplace, s.Group
		case 3:
			s.Hold = &store.Hold{Note: []byte("from the beginning")}
			if d.pick(2) == 0 {
				s.Hold.Until.At = moment.Millis(d.clock.Now().UnixMilli()) + moment.Millis(1+d.pick(256)*100)
			}
		case 1, 2:
			s.Conflict = store.ConflictReplace
			s.Body = []byte{byte(d.pick(256))}
			if d.pick(6) == 0 {
				s.Body = bytes.Repeat([]byte("large"), 800+d.pick(256)*4)
			}
			s.OldGroup = s.Group
			if d.pick(2) == 0 {
				s.Group = groups[d.pick(len(groups))]
			}
		default:
		}
		d.quoted(&s)
		if !seen[s.Agent+"/"+s.ID] {
			seen[s.Agent+"/"+s.ID] = true
			subs = append(subs, s)
		}
	}
	ra, ea := d.a.Submit(d.Context(), d.versioned(d.a, subs))
	rb, eb := d.b.Submit(d.Context(), d.versioned(d.b, subs))
	d.same("submit", ea, eb, ra, rb)
}

// versioned fills in what a store says the versions of the tasks to be replaced are; now and then an old one.
func (d *driver) versioned(s store.Store, subs []store.Submission) []store.Submission {
	subs = slices.Clone(subs)
	for i := range subs {
		if subs[i].Conflict == store.ConflictReplace {
			subs[i].Version = d.version(s, subs[i].Agent, subs[i].ID)
		}
	}
	return subs
}

func (d *driver) version(s store.Store, agent, id string) string {
	page, err := s.Get(d.Context(), store.Get{Agent: agent, IDs: []string{id}})
	require.NoError(d, err)
	return page.Tasks[0].Version
}

func (d *driver) extend() {
	if len(d.runs) == 0 {
		return
	}
	run := d.runs[max(len(d.runs)-1-d.pick(10), 0)]
	e := store.Extension{Partition: run.Partition, Fence: run.Fence, Lease: time.Duration(1+d.pick(4)) * time.Second}
	if d.pick(2) == 0 {
		e.Progress = []store.Progress{{Run: run.Run, State: fmt.Appendf(nil, "progress %d", d.nonces), Number: int64(d.pick(4))}}
		if d.pick(2) == 0 {
			e.Progress[0].Used = []bound.Used{{Unit: "tokens", Amount: bound.Amount(d.pick(20)) * bound.AmountOne / 10}}
		}
	}
	switch d.pick(6) {
	case 0:
		e.Leave = true
	case 1, 2:
		if d.pick(4) == 0 {
			e.Lease = 0
		}
		d.nonces++
		e.Nonce, e.Progress = fmt.Sprintf("nonce%011d", d.nonces), nil
		for _, other := range d.runs {
			if other.Partition == run.Partition && other.Fence == run.Fence {
				e.Back = append(e.Back, other.Run)
			}
		}
	default:
	}
	ra, ea := d.a.Extend(d.Context(), []store.Extension{e})
	e.Fence = d.fences[claimName{e.Partition, e.Fence}]
	e.Back = d.fences.ofB(e.Back)
	rb, eb := d.b.Extend(d.Context(), []store.Extension{e})
	d.cameBack(ra, rb)
	d.same("extend", ea, eb, ra, rb)
}

// cameBack notes runs that were leased again, and takes their fences out of the comparison.
func (d *driver) cameBack(ra, rb []store.Extended) {
	if len(ra) == 0 || len(rb) == 0 || len(ra[0].Back) != len(rb[0].Back) {
		return
	}
	for i, run := range ra[0].Back {
		d.fences[claimName{run.Partition, run.Fence}] = rb[0].Back[i].Fence
		for _, again := range slices.Backward(d.runs) { // as it was claimed last
			if again.Agent == run.Agent && again.ID == run.ID {
				again.Run = run
				d.runs = append(d.runs, again)
				break
			}
		}
		rb[0].Back[i].Fence = run.Fence
	}
}

func (d *driver) replay() {
	if len(d.dead) == 0 {
		return
	}
	tasks := []store.Replay{given.Replay(d.dead[d.pick(len(d.dead))])}
	if d.quotas != nil {
		tasks[0].Recurs, tasks[0].Bound = d.pick(3) == 0, d.pick(2) == 0
	}
	ra, ea := d.a.Replay(d.Context(), tasks)
	rb, eb := d.b.Replay(d.Context(), tasks)
	d.same("replay", ea, eb, ra, rb)
}

func (d *driver) read() {
	if d.pick(2) == 0 {
		ids := []string{fmt.Sprintf("t%02d", d.pick(43)), fmt.Sprintf("t%02d", d.pick(43))}
		d.get(store.Get{Agent: d.agent(), IDs: ids, Explain: d.pick(2) == 0})
		return
	}
	if d.pick(4) == 0 {
		d.find()
		return
	}
	agent := d.agent()
	d.group(agent, "g")
	d.list(store.List{Agent: agent, Limit: 1 + d.pick(50)})
}

// advance moves both clocks, from nothing to half a day.
func (d *driver) advance() {
	steps := []time.Duration{0, time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second, 70 * time.Second, time.Hour, 11 * time.Hour}
	d.clock.Advance(steps[d.pick(len(steps))])
	switch d.pick(8) {
	case 0, 1:
		d.audit()
	case 2:
		d.pauses()
	}
}

// finish compares everything that is left.
func (d *driver) finish() {
	for _, agent := range agents {
		d.list(store.List{Agent: agent, Limit: 1000})
		for _, group := range groups[2:] {
			d.group(agent, group)
		}
	}
	d.agents()
	d.profiles()
	d.pauses()
	d.audit()
	ra, ea := d.a.Stats(d.Context())
	rb, eb := d.b.Stats(d.Context())
	ra.Now, rb.Now = 0, 0
	d.same("stats", ea, eb, ra, rb)
}

// same demands the same answer, or an error of the same sort.
func (d *driver) same(verb string, ea, eb error, ra, rb any) {
	d.Helper()
	if ea != nil || eb != nil {
		require.Error(d, ea, verb)
		require.Error(d, eb, verb)
		require.Equal(d, refusal(ea), refusal(eb), verb)
		return
	}
	require.Equal(d, ra, rb, verb)
}
