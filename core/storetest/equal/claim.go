package equal

// Claims and looks, of all sorts.

import (
	"fmt"
	"net/url"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// claim makes a claim, or repeats the last one.
func (d *driver) claim() {
	if len(d.claims) > 0 && d.pick(8) == 0 { // again, as if the answer had been lost
		d.claimOne(d.claims[len(d.claims)-1])
		return
	}
	d.nonces++
	r := store.ClaimRequest{
		Tell:      d.pick(2) == 0,
		Partition: d.pick(d.partitions), Nonce: fmt.Sprintf("nonce%011d", d.nonces), Limit: 1 + d.pick(12),
		Lease: time.Duration(1+d.pick(4)) * time.Second, PerAgent: d.pick(4), Stamp: d.stamp(), Expect: d.expect(),
	}
	d.bound(&r)
	if d.mostly() {
		r.Kinds, r.PerAgent = kinds, 0
		if d.pick(3) == 0 {
			d.name(&r)
		} else if n := d.pick(8); n > 0 {
			r.Ahead, r.AheadMost, r.AheadLease = time.Duration(n)*400*time.Millisecond, 1+d.pick(8), 300*time.Millisecond
		}
		d.look(r)
		d.claims = append(d.claims, r)
		d.claimOne(r)
		return
	}
	for i, kind := range kinds {
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
		d.name(&r)
	}
	d.look(r)
	d.claims = append(d.claims, r)
	d.claimOne(r)
}

// bound gives notice of leases that are over, bounds suspects, and gives kinds leases of their own.
func (d *draw) bound(r *store.ClaimRequest) {
	if d.pick(2) == 0 {
		r.Notice = time.Duration(1+d.pick(20)) * 100 * time.Millisecond
	}
	if d.pick(3) > 0 {
		r.Suspects, r.MaxCrashes = &[store.SuspectSorts]int{d.pick(4), d.pick(3), d.pick(2)}, d.pick(4)
	}
	if d.pick(4) == 0 {
		r.Leases = map[string]time.Duration{kinds[d.pick(2)]: time.Duration(1+d.pick(4)) * time.Second}
	}
}

// start claims with a task of the claim's own: mostly one that runs at once.
func (d *driver) start() {
	d.nonces++
	s := d.submission()
	if d.pick(4) > 0 {
		s.Due = moment.When{}
	}
	if d.pick(6) == 0 {
		s.Conflict = store.ConflictFail
	}
	r := store.ClaimRequest{
		Partition: store.PartitionOf(s.Agent, d.partitions), Nonce: fmt.Sprintf("nonce%011d", d.nonces), Limit: 1,
		Lease: time.Duration(1+d.pick(4)) * time.Second, Kinds: []string{s.Kind}, New: &s, Stamp: d.stamp(),
	}
	d.claims = append(d.claims, r)
	d.claimOne(r)
}

// expect is what some claims expect runs to use.
func (d *draw) expect() []bound.Expected {
	n := len(d.data)
	if n%3 > 0 {
		return nil
	}
	return []bound.Expected{
		{Kind: kinds[n/3%3], Used: bound.Used{Unit: "tokens", Amount: bound.Amount(1+n/9%8) * bound.AmountOne / 2}},
		{Kind: kinds[(n/3+1)%3], Used: bound.Used{Unit: "usd", Amount: bound.AmountOne}},
	}
}

// stamp is mostly none, and else one that a partition may know or not.
func (d *draw) stamp() string {
	if n := len(d.data); n%6 == 0 {
		return given.Stamp(n / 6 % 4)
	}
	return ""
}

// stamps gives a stamp to both stores.
func (d *driver) stamps() {
	stamp, of := given.Stamp(d.pick(3)), []bound.BudgetTarget(nil)
	limits, err := d.a.Limits(d.Context())
	require.NoError(d, err)
	if len(d.data)%3 == 0 { // one that is hardly set
		limits = append(limits, bound.LimitUse{Limit: d.someLimit()})
	}
	for i := range limits {
		of = append(of, bound.BudgetTarget{LimitTarget: limits[i].About})
	}
	budgets, err := d.a.Budgets(d.Context())
	require.NoError(d, err)
	for i := range budgets {
		of = append(of, budgets[i].About)
	}
	ra, ea := d.a.Stamp(d.Context(), stamp, of...)
	rb, eb := d.b.Stamp(d.Context(), stamp, of...)
	d.same("stamp", ea, eb, ra, rb)
}

// name asks for some agents of the partition.
func (d *draw) name(r *store.ClaimRequest) {
	for _, agent := range agents {
		if store.PartitionOf(agent, d.partitions) == r.Partition && d.pick(2) == 0 {
			r.Agents = append(r.Agents, agent)
		}
	}
}

// picky makes some requests pass over tasks.
func (d *draw) picky(r *store.ClaimRequest) {
	r.Serial = d.pick(5) == 0
	switch d.pick(6) {
	case 0:
		r.Urgent = true
	case 1:
		r.Most = map[string]int{kinds[d.pick(len(kinds))]: d.pick(3)}
	case 2: // it has seen a fence of a store whose clock was ahead
		r.Fence = store.Fence(d.clock.Now().Add(5*time.Second).UnixMilli() * 1024)
		return
	default:
		return
	}
	if d.pick(3) == 0 {
		r.After = moment.Millis(d.clock.Now().UnixMilli()) - moment.Millis(d.pick(256)*20)
		if len(d.data)%2 == 0 {
			r.AfterName = agents[len(d.data)/2%4] // one whose name all stores write in the same way
		}
	}
}

func (d *driver) claimOne(r store.ClaimRequest) {
	var sa, sb []store.Settlement
	if d.pick(4) == 0 {
		sa, sb = d.settlements()
	}
	// One after the other: what a store has to settle in a second try may come after the claim of a turn.
	tb, rb, eb := store.InTurn(d.Context(), d.b, sb, []store.ClaimRequest{r})
	if r.Ahead > 0 && rb[0].Ahead == 0 {
		r.Ahead = 0 // a store need not take anything ahead
	}
	ta, ra, ea := d.a.Turn(d.Context(), sa, []store.ClaimRequest{r})
	d.same("turn", ea, eb, ta, tb)
	ca, cb := ra[0], rb[0]
	if ca.Fence != 0 {
		d.fences[claimName{r.Partition, ca.Fence}] = cb.Fence
	}
	for i := range ca.Tasks {
		run := ca.Tasks[i]
		if (d.tame || i%2 == 0) && i < len(cb.Tasks) { // every other run goes back with the name that the store has given
			run.Ref = cb.Tasks[i].Ref
		}
		d.runs = append(d.runs, run)
		ca.Tasks[i].Fence = 0
	}
	for i := range cb.Tasks {
		cb.Tasks[i].Fence, cb.Tasks[i].Ref = 0, ""
	}
	ca.Fence, cb.Fence = min(ca.Fence, 1), min(cb.Fence, 1)
	d.same("claim", ca.Err, cb.Err, nil, nil)
	ca.Err, cb.Err = nil, nil
	if ca.Unstamped {
		cb.Ahead = 0
	}
	cb.Unstamped = cb.Unstamped || len(cb.Tasks) == 0 && ca.Unstamped // where nothing is due it need not be told
	ca.PassedName, cb.PassedName = bare(ca.PassedName), bare(cb.PassedName)
	require.Equal(d, ca, cb, "claim %+v", r)
}

// bare is a name of an agent's place as no store writes it: Redis has its agents encoded.
func bare(name string) string {
	if plain, err := url.PathUnescape(name); err == nil {
		return plain
	}
	return name
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
