package storetest

// Two stores, the same random calls, the same answers.

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Equal drives two stores with the same random calls and demands the same answers. Both must be empty, have the same
// options, and be at the time of clock. The choices come from data, a byte for each; it returns the number of calls.
//
// Only what a store may choose freely is not compared: the numbers of fences, and a look's answer, which may be too
// early but never too late.
// Every disagreement is a fault in one of the two stores, most often in the one that is not the
// reference. A failure names the call, and the same data repeats it.
func Equal(t *testing.T, clock *Clock, a, b store.Store, data []byte) int {
	t.Helper()
	d := &driver{T: t, clock: clock, a: a, b: b, data: data, fences: map[claimName]store.Fence{}}
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

// claimName names a claim: fences are numbered by partition.
type claimName struct {
	partition int
	fence     store.Fence
}

// driver has both stores, and what it remembers of them to make sensible calls.
type driver struct {
	*testing.T

	clock  *Clock
	a, b   store.Store
	data   []byte
	fences map[claimName]store.Fence // of a -> of b
	claims []store.ClaimRequest      // made so far
	runs   []store.Claimed           // claimed so far, with the fences of a
	dead   []store.Submission
	nonces int
	// tame calls are mostly such as most stores get nothing else of: small tasks of one level an agent, and claims of whatever is due.
	tame bool
	ids  int // of tasks, for each agent
	// quotas are those of agents, by the profile that has them; nil until one was set.
	quotas map[string]*store.Quota
	was    map[string]string // the profiles that agents have got
}

// mostly is false now and then, and more often while calls are not tame.
func (d *driver) mostly() bool { return d.tame && d.pick(8) > 0 }

// pick is the next choice, below n.
func (d *driver) pick(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	c := d.data[0]
	d.data = d.data[1:]
	return int(c) % n
}

// Ids sort the same whether encoded for keys or not, as ties in a store's order may go by either.
// Few of each, so that calls meet the same tasks again and again.
var (
	equalAgents = []string{"a", "b", "c", "d", "e{}", "f:g"}
	equalKinds  = []string{"k0", "k1", "k2"}
	equalGroups = []string{"", "", "g", "h:1"}
	equalKeys   = []string{"", "", "key", "k:{}"}
)

// groupOf is the group that all tasks with an id are submitted with; what replaces one may be of another.
func groupOf(id string) string { return equalGroups[int(id[len(id)-1])%len(equalGroups)] }

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
			crowd(d)
			return
		}
		d.receive()
		printing(d)
		d.hold()
	default:
		d.advance()
	}
}

func (d *driver) agent() string { return equalAgents[d.pick(len(equalAgents))] }

// submission is a random task that is new or exists.
func (d *driver) submission() store.Submission {
	id := d.pick(d.ids)
	s := store.Submission{
		Agent: d.agent(), ID: fmt.Sprintf("t%02d", id), Kind: equalKinds[d.pick(len(equalKinds))],
		Level: store.Level(1 + d.pick(3)), Group: groupOf(fmt.Sprintf("t%02d", id)), Key: equalKeys[d.pick(len(equalKeys))],
	}
	s.Body = []byte("body " + s.ID)
	if d.mostly() {
		s.Level, s.Group = store.Level(1+len(s.Agent)%3), ""
		if d.pick(3) == 0 {
			s.Due.After = time.Duration(d.pick(256)) * 10 * time.Millisecond
		}
		return s
	}
	switch d.pick(8) {
	case 0:
		s.Body = bytes.Repeat(s.Body, 500+d.pick(256)*4)
	case 1: // a few of these are as much as one claim looks at
		s.Body = bytes.Repeat(s.Body, (40+d.pick(256)/4)<<8)
	default:
	}
	if d.pick(8) == 0 {
		s.State = []byte("first")
	}
	if n := len(d.data); n%5 == 0 { // little room, so that some are refused; hours go by now and then
		s.Root = &store.Root{Agent: "root:{}", ID: equalKeys[2+n/5%2], Most: 3 + n/10%6}
	}
	switch d.pick(4) {
	case 0:
		s.Due.After = time.Duration(d.pick(256)) * 10 * time.Millisecond
	case 1:
		s.Due.At = store.Millis(d.clock.Now().UnixMilli()) + store.Millis(d.pick(256)*10-1000)
	default:
	}
	return s
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
				s.Hold.Until.At = store.Millis(d.clock.Now().UnixMilli()) + store.Millis(1+d.pick(256)*100)
			}
		case 1, 2:
			s.Conflict = store.ConflictReplace
			s.Body = []byte{byte(d.pick(256))}
			if d.pick(6) == 0 {
				s.Body = bytes.Repeat([]byte("large"), 800+d.pick(256)*4)
			}
			s.OldGroup = s.Group
			if d.pick(2) == 0 {
				s.Group = equalGroups[d.pick(len(equalGroups))]
			}
		default:
		}
		quoted(d, &s)
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
			e.Progress[0].Used = []store.Used{{Unit: "tokens", Amount: store.Amount(d.pick(20)) * store.AmountOne / 10}}
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
	e.Back = d.asB(e.Back)
	rb, eb := d.b.Extend(d.Context(), []store.Extension{e})
	d.cameBack(ra, rb)
	d.same("extend", ea, eb, ra, rb)
}

// asB are runs with the fences of b.
func (d *driver) asB(runs []store.Run) []store.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Fence = d.fences[claimName{runs[i].Partition, runs[i].Fence}]
	}
	return runs
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
	tasks := []store.Replay{replay(d.dead[d.pick(len(d.dead))])}
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
	for _, agent := range equalAgents {
		d.list(store.List{Agent: agent, Limit: 1000})
		for _, group := range equalGroups[2:] {
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
