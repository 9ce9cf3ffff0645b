package redisstore

// Turns under limits that span partitions: ended runs are reported to homes, and permits requested from them, between settling and claiming.

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// spanning is the part of a turn that asks homes.
type spanning struct {
	store    *Store
	requests []store.ClaimRequest
	calls    []call.Call // of the requests
	replies  [][]any
	errs     []error

	reports []report // that the homes do not know yet
	later   []int    // requests that are to ask first
	opened  []int    // partitions in which others wait that may have permits now
	crossed []bound.Crossing
}

// answered looks at the answers to the first calls of a turn. A claim that found only tasks that wait for permits is made again with them.
func (t *spanning) answered(settles []call.Call, settled [][]any, members [][]int) {
	p := t.store.permits
	for i, reply := range settled {
		if n := len(members[i]); settles[i].Full == nil && len(reply) == n+3 {
			said, _ := reply[n+2].([]any)
			t.reports = p.settled(settles[i].Partition, said, t.reports)
		}
		if len(reply) > 0 {
			p.heard(settles[i].Partition, moment.Millis(layout.Number(reply[0])))
		}
	}
	for i := range t.requests {
		if t.claimed(i, false) && layout.Text(t.replies[i][3]) == "" {
			t.later = append(t.later, i)
		}
	}
}

// claimed learns from the answer to a request, and reports whether tasks wait for permits.
func (t *spanning) claimed(i int, brought bool) bool {
	reply := t.replies[i]
	if t.requests[i].New != nil || t.calls[i].Full != nil || len(reply) < claimHead {
		return false
	}
	said, _ := reply[claimSpans].([]any)
	var waits bool
	t.reports, waits = t.store.permits.claimed(t.calls[i].Partition, said, t.reports, brought)
	t.store.permits.heard(t.calls[i].Partition, moment.Millis(layout.Number(reply[0])))
	return waits
}

// run reports ended runs to homes, asks them for permits, and makes the claims that come with these. Without a home that answers the claims are made
// without permits, so that tasks that need none still start.
func (t *spanning) run(ctx context.Context) {
	if len(t.reports)+len(t.later) == 0 {
		return
	}
	questions, done := t.store.permits.questions(t.requests, t.later)
	bring := t.ask(ctx, append(t.take(), questions...))
	t.claim(ctx, bring)
	done()
	if len(t.reports) > 0 { // of permits brought and not used, and from partitions that did not ask
		t.visit(ctx, t.ask(ctx, t.take()), nil)
	}
}

// take are the reports, which are the homes' business from here on.
func (t *spanning) take() []report {
	out := t.reports
	t.reports = nil
	return out
}

// questionLen is the length of the name of a question to a home.
const questionLen = 10

// ask calls homes, and returns what claims are to bring to the partitions.
func (t *spanning) ask(ctx context.Context, reports []report) brought {
	s := t.store
	var calls []call.Call
	var members [][]report
	at, nonce := map[int]int{}, rand.Text()[:questionLen]
	for _, r := range reports {
		home := s.db.PartitionOf(r.bucket)
		k, known := at[home]
		if !known {
			k = len(calls)
			at[home] = k
			calls, members = append(calls, call.Call{Script: &s.db.Scripts.Permit, Partition: home, Args: []any{len(s.db.Parts), nonce}}), append(members, nil)
		}
		calls[k].Args, members[k] = append(calls[k].Args, r.args()...), append(members[k], r)
	}
	bring := brought{}
	asked := time.Now()                                    //nolint:forbidigo // by when permits are used is counted from before they were given
	replies, _ := s.db.RunAll(ctx, call.VerbPermit, calls) // one that is away gives no permits: nothing that needs one starts
	for k, reply := range replies {
		if len(reply) == len(members[k])+4 {
			t.granted(members[k], reply[1:], asked, bring)
		}
	}
	return bring
}

// granted reads the answer of a home.
func (t *spanning) granted(reports []report, reply []any, asked time.Time, bring brought) {
	p := t.store.permits
	for i, r := range reports {
		said, _ := reply[i].([]any)
		if r.wants == 0 || len(said) != grantFields {
			continue
		}
		wait := time.Duration(layout.Number(said[2])) * time.Millisecond
		var until moment.Millis
		if good := layout.Number(said[3]); good > 0 {
			until = p.until(r.partition, asked, time.Duration(good)*time.Millisecond)
		}
		bring.add(r.bucketIn, layout.Int(layout.Text(said[0])), layout.Number(said[1]), wait, until, layout.Text(said[4]))
		p.told(r.bucketIn, wait)
	}
	n := len(reports)
	wakes, _ := reply[n].([]any)
	for i := 0; i+unaskedFields <= len(wakes); i += unaskedFields {
		in := inOf(wakes[i:])
		p.woken(in, layout.Number(wakes[i+2]))
		bring.add(in, 0, 0, 0, 0, "0")
		if !slices.Contains(t.opened, in.partition) {
			t.opened = append(t.opened, in.partition)
		}
	}
	silent, _ := reply[n+1].([]any)
	for i := 0; i+unaskedFields <= len(silent); i += unaskedFields {
		bring.add(inOf(silent[i:]), layout.Int(layout.Text(silent[i+2])), 0, 0, 0, layout.Text(silent[i+3]))
	}
	crossed, _ := reply[n+2].([]any)
	for i := 0; i+1 < len(crossed); i += 2 {
		if c, err := bounds.ParseCrossing(crossed[i], crossed[i+1]); err == nil {
			t.crossed = append(t.crossed, c)
		}
	}
}

// claim makes the claims that were to ask first, and brings to other partitions what is for them.
func (t *spanning) claim(ctx context.Context, bring brought) {
	calls := make([]call.Call, len(t.later))
	for k, i := range t.later {
		r := &t.requests[i]
		calls[k] = call.Call{Script: &t.store.db.Scripts.Claim, Partition: r.Partition, Args: claimArgs(r, bring[r.Partition])}
		delete(bring, r.Partition)
	}
	replies, errs := t.visit(ctx, bring, calls)
	for k, i := range t.later {
		before := t.replies[i]
		t.calls[i], t.replies[i], t.errs[i] = calls[k], replies[k], errs[k]
		t.claimed(i, true)
		if len(before) >= claimHead && len(replies[k]) >= claimHead { // what the first claim did counts too
			replies[k][4] = layout.Number(replies[k][4]) + layout.Number(before[4])
			replies[k][5] = bothParked(before[5], replies[k][5])
			replies[k][claimNoticed] = layout.Number(replies[k][claimNoticed]) + layout.Number(before[claimNoticed])
			was, _ := before[claimFrom].([]any)
			now, _ := replies[k][claimFrom].([]any)
			replies[k][claimFrom] = append(was, now...)
		}
	}
}

// notice is how long the notice of leases is that the claims of the turn give; where it has none, that of the shortest usual ones.
func (t *spanning) notice() time.Duration {
	if len(t.requests) > 0 {
		return t.requests[0].Notice
	}
	return time.Second
}

// visit makes calls, and brings to other partitions what is for them with claims for nothing.
func (t *spanning) visit(ctx context.Context, bring brought, calls []call.Call) (replies [][]any, errs []error) {
	n := len(calls)
	for partition, lines := range bring {
		r := store.ClaimRequest{Partition: partition, Nonce: rand.Text()[:store.NonceLen], Lease: time.Second, Notice: t.notice()}
		calls = append(calls, call.Call{Script: &t.store.db.Scripts.Claim, Partition: partition, Args: claimArgs(&r, lines)})
	}
	if len(calls) == 0 {
		return nil, nil
	}
	replies, errs = t.store.db.RunAll(ctx, call.VerbTurn, calls)
	for i := n; i < len(calls); i++ {
		if len(replies[i]) >= claimHead {
			said, _ := replies[i][claimSpans].([]any)
			t.reports, _ = t.store.permits.claimed(calls[i].Partition, said, t.reports, true)
		}
	}
	return replies[:n], errs[:n]
}

// spread passes on the other news from the homes: partitions in which a claim is worth it, and budgets that are used up. A budget that pauses
// does so in all partitions.
func (s *Store) spread(ctx context.Context, t *spanning, settled []store.Settled, claimed []store.Claim) {
	if len(settled) > 0 {
		settled[0].Opened = t.opened
	}
	switch {
	case len(t.crossed) == 0:
		return
	case len(settled) > 0:
		settled[0].Crossed = settled[0].Crossed.Add(t.crossed...)
	case len(claimed) > 0:
		claimed[0].Crossed = append(claimed[0].Crossed, t.crossed...)
	}
	for i := range t.crossed {
		s.pauseAll(ctx, &t.crossed[i])
	}
}

// pauseAll pauses the scope of a budget that is used up, if it is to be paused: its home has done so in its own partition only.
func (s *Store) pauseAll(ctx context.Context, c *bound.Crossing) {
	name := bounds.BudgetName(c.About)
	text, err := s.db.Client.Do(ctx, "HGET", s.db.Parts[0].Key("limits"), name).Text()
	var b bound.Budget
	if err == nil {
		b, err = bounds.ParseBudget(name, text)
	}
	if err == nil && b.Then == bound.ThenPause {
		target := store.Target{Kind: c.About.Kind}
		if key := cmp.Or(c.Of, c.About.Key); key != "" {
			target = store.Target{Key: key}
		}
		_, err = s.Hold(ctx, []store.Hold{{Target: target, Note: b.Note}})
	}
	if err != nil && !errors.Is(err, redis.Nil) {
		s.config.Logger.WarnContext(ctx, "a budget is used up, but its pause is not set in all partitions; its tasks wait for the next period all the same", slog.Any("err", err))
	}
}

// How many fields a home has for each question, and for each bucket in a partition that it speaks of unasked.
const (
	grantFields   = 5
	unaskedFields = 4
)

// inOf is the bucket that the first two of them name.
func inOf(fields []any) bucketIn {
	return bucketIn{int(layout.Int(layout.Text(fields[1]))), layout.Text(fields[0])}
}
