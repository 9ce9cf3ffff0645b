package storetest

// Two stores, the same random calls, the same answers.

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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
	calls := 0
	for len(d.data) > 0 {
		d.step()
		calls++
	}
	d.finish()
	return calls
}

// Random is data for Equal: n choices from a seed.
func Random(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	data := make([]byte, n)
	for i := range data {
		data[i] = byte(r.UintN(256))
	}
	return data
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
}

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
	case c < 10:
		d.claim()
	case c < 15:
		d.settle()
	case c == 15:
		d.extend()
	case c == 16:
		d.replay()
	case c == 17:
		d.read()
	case c == 18:
		d.touch()
	case c < 21:
		d.order()
	case c == 21:
		d.hold()
	default:
		d.advance()
	}
}

func (d *driver) agent() string { return equalAgents[d.pick(len(equalAgents))] }

// submission is a random task that is new or exists.
func (d *driver) submission() store.Submission {
	id := d.pick(40)
	s := store.Submission{
		Agent: d.agent(), ID: fmt.Sprintf("t%02d", id), Kind: equalKinds[d.pick(len(equalKinds))],
		Level: store.Level(1 + d.pick(3)), Group: groupOf(fmt.Sprintf("t%02d", id)), Key: equalKeys[d.pick(len(equalKeys))],
	}
	s.Body = []byte("body " + s.ID)
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

// claim makes a claim, or repeats the last one.
func (d *driver) claim() {
	if len(d.claims) > 0 && d.pick(8) == 0 { // again, as if the answer had been lost
		d.claimOne(d.claims[len(d.claims)-1])
		return
	}
	d.nonces++
	r := store.ClaimRequest{
		Partition: d.pick(d.a.Partitions()), Nonce: fmt.Sprintf("nonce%011d", d.nonces), Limit: 1 + d.pick(12),
		Lease: time.Duration(1+d.pick(4)) * time.Second, PerAgent: d.pick(4),
	}
	for i, kind := range equalKinds {
		switch c := d.pick(8); {
		case i == 0 || c < 5:
			r.Kinds = append(r.Kinds, kind)
		case c == 5:
			r.Leave = append(r.Leave, kind)
		default:
		}
	}
	d.picky(&r)
	if d.pick(4) == 0 {
		for _, agent := range equalAgents {
			if store.PartitionOf(agent, d.a.Partitions()) == r.Partition && d.pick(2) == 0 {
				r.Agents = append(r.Agents, agent)
			}
		}
	}
	d.look(r)
	d.claims = append(d.claims, r)
	d.claimOne(r)
}

// picky makes some requests pass over tasks.
func (d *driver) picky(r *store.ClaimRequest) {
	r.Serial = d.pick(5) == 0
	switch d.pick(6) {
	case 0:
		r.Urgent = true
	case 1:
		r.Most = map[string]int{equalKinds[d.pick(len(equalKinds))]: d.pick(3)}
	case 2: // it has seen a fence of a store whose clock was ahead
		r.Fence = store.Fence(d.clock.Now().Add(5*time.Second).UnixMilli() * 1024)
		return
	default:
		return
	}
	if d.pick(3) == 0 {
		r.After = store.Millis(d.clock.Now().UnixMilli()) - store.Millis(d.pick(256)*20)
	}
}

func (d *driver) claimOne(r store.ClaimRequest) {
	ra, ea := d.a.Claim(d.Context(), []store.ClaimRequest{r})
	rb, eb := d.b.Claim(d.Context(), []store.ClaimRequest{r})
	require.NoError(d, ea)
	require.NoError(d, eb)
	ca, cb := ra[0], rb[0]
	if ca.Fence != 0 {
		d.fences[claimName{r.Partition, ca.Fence}] = cb.Fence
	}
	for i := range ca.Tasks {
		run := ca.Tasks[i]
		if i%2 == 0 && i < len(cb.Tasks) { // every other run goes back with the name that the store has given
			run.Ref = cb.Tasks[i].Ref
		}
		d.runs = append(d.runs, run)
		ca.Tasks[i].Fence = 0
	}
	for i := range cb.Tasks {
		cb.Tasks[i].Fence, cb.Tasks[i].Ref = 0, ""
	}
	ca.Fence, cb.Fence = min(ca.Fence, 1), min(cb.Fence, 1)
	require.Equal(d, ca, cb, "claim %+v", r)
}

// look checks that a cheap look never says later than a claim would.
func (d *driver) look(r store.ClaimRequest) {
	asked := []store.LookRequest{{Partition: r.Partition, Agents: r.Agents, Kinds: r.Kinds}}
	ra, ea := d.a.Look(d.Context(), asked)
	rb, eb := d.b.Look(d.Context(), asked)
	require.NoError(d, ea)
	require.NoError(d, eb)
	if due := ra[0].NextDue; due != 0 {
		require.NotZero(d, rb[0].NextDue, "the look misses work")
		require.LessOrEqual(d, rb[0].NextDue, max(due, rb[0].Now), "the look is late")
	}
}

func (d *driver) extend() {
	if len(d.runs) == 0 {
		return
	}
	run := d.runs[max(len(d.runs)-1-d.pick(10), 0)]
	e := store.Extension{Partition: run.Partition, Fence: run.Fence, Lease: time.Duration(1+d.pick(4)) * time.Second}
	if d.pick(2) == 0 {
		e.Progress = []store.Progress{{Run: run.Run, State: []byte("progress")}}
	}
	ra, ea := d.a.Extend(d.Context(), []store.Extension{e})
	e.Fence = d.fences[claimName{e.Partition, e.Fence}]
	rb, eb := d.b.Extend(d.Context(), []store.Extension{e})
	d.same("extend", ea, eb, ra, rb)
}

func (d *driver) replay() {
	if len(d.dead) == 0 {
		return
	}
	tasks := []store.Replay{replay(d.dead[d.pick(len(d.dead))])}
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
