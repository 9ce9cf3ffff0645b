package core

// Lent runs: tasks that are claimed and decided here, and run by a worker outside of this process.

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/internal/waiting"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Bounds of a [Loan], and what its zeroes mean.
const (
	MaxLent          = store.MaxClaim
	DefaultLoanLease = time.Minute
	MinLoanLease     = time.Second
	MaxLoanLease     = time.Hour
	MaxLoanKinds     = 100
	maxWorker        = 100 // characters of a name
)

// Loan says what a worker outside of this process asks for.
type Loan struct {
	Kinds  []string      // that it runs: at least one
	Agents []string      // whose tasks; nil for all
	Most   int           // most runs, up to [MaxLent]; 1 if zero
	Lease  time.Duration // how long a run is held without a sign of life; [DefaultLoanLease] if zero
	Wait   time.Duration // how long to wait for the first run; not at all if zero
	Worker string        // its name in the history of tasks and among the processes; Config.Name if empty
}

// Lent is what a worker gets.
type Lent struct {
	Runs    []LentRun
	NextDue time.Time // when something is due next, as far as is known, by the store's clock; zero for never

	since time.Time // before the claim was sent
}

// LentRun is a run that a worker is to make.
type LentRun struct {
	*Task[json.RawMessage]

	Ticket  Ticket
	Timeout time.Duration // how long it may take; zero for any time
	Prints  bool          // the store keeps what it prints
}

// Ticket names a lent run, and has what any process on the same store needs to go on with it. One that was made up ends another's run: hand it out
// signed.
type Ticket struct {
	Partition int           `json:"p"`
	Fence     store.Fence   `json:"f"`
	Index     int           `json:"i"`
	Agent     string        `json:"a"`
	ID        string        `json:"t"`
	Kind      string        `json:"k"`
	Worker    string        `json:"w"`
	Due       moment.Millis `json:"d"`
	Claimed   moment.Millis `json:"c"`
	Lease     time.Duration `json:"l"`
	Timeout   time.Duration `json:"o,omitempty"`
	Crashes   int           `json:"x,omitempty"` // as claimed: the store may have heard since that one was none
	Ref       []byte        `json:"r,omitempty"` // of the store, as [store.Run] has it
	Attempt   int           `json:"n,omitempty"` // for its output: zero in a ticket of an older version
	Turn      int           `json:"u,omitempty"`
}

// errLent is the outcome of a run for this process: it goes on elsewhere, under its lease.
var errLent = errors.New("the run is lent")

// loan is what a pull lends.
type loan struct {
	Loan

	lender  *Lender
	handler handler
	gone    func() bool // its caller is no longer there

	mu    sync.Mutex
	taken []LentRun
	ended func(r *run, result store.Settled) // for runs that have come back
}

// Lender lends runs to workers outside of this process, keeps them and takes them back. It knows nothing of a run but by its ticket: any lender on the
// same store goes on with it. It is safe for concurrent use.
type Lender struct {
	s    *Scheduler
	room waiting.Room

	mu        sync.Mutex
	sightings map[string]sighting // of workers that were reported lately
	lent      map[store.Run]*known
}

// known is a task as it was lent here, so that it need not be read again. Another process may have stored states of its run since: the number of the
// last one says whether that is so.
type known struct {
	claimed Claimed
	number  int64
	until   time.Time
}

// mostKnown is how many lent tasks are remembered, and their bytes.
const mostKnown, mostKnownBytes = 4096, 4 << 10

// remember keeps a task that is lent, if it is small.
func (l *Lender) remember(c *Claimed, run store.Run, lease time.Duration) {
	if len(c.Body)+len(c.State)+len(c.Profile) > mostKnownBytes {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.config.Clock.Now()
	if len(l.lent) >= mostKnown {
		maps.DeleteFunc(l.lent, func(_ store.Run, k *known) bool { return now.After(k.until) })
	}
	if len(l.lent) >= mostKnown {
		return
	}
	if l.lent == nil {
		l.lent = map[store.Run]*known{}
	}
	l.lent[run] = &known{claimed: *c, until: now.Add(lease)}
}

// recall is a lent task as it is, if that is known: number is that of the last state which its worker has sent.
func (l *Lender) recall(run store.Run, number int64) (Claimed, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.lent[run]
	if k == nil {
		return Claimed{}, false
	}
	// guard: lent-elsewhere
	if k.number != number {
		return Claimed{}, false
	}
	return k.claimed, true
}

// learn notes a state of a run that was stored; without one, that the run is over or what is known of it is not right any more.
func (l *Lender) learn(run store.Run, state []byte, number int64, lease time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k := l.lent[run]
	switch {
	case k == nil:
	case state == nil || number == 0 || len(state) > mostKnownBytes:
		delete(l.lent, run)
	case number > k.number:
		k.claimed.State, k.number, k.until = state, number, l.s.config.Clock.Now().Add(lease)
	}
}

// NewLender makes a lender of a scheduler: its settings count, and its handlers and slots do not.
func NewLender(s *Scheduler) *Lender {
	return &Lender{s: s, room: waiting.Room{Clock: s.config.Clock, Waker: s.waker, Until: s.Until}}
}

// EndWith has the lender listen to nothing any more once a channel is closed, as the process stops. It is called before the first loan.
func (l *Lender) EndWith(stopping <-chan struct{}) { l.room.Ends = stopping }

// Lend claims due tasks for a worker outside of this process. Everything that a start needs is decided here, as for a handler: what has missed its
// time, overlaps, is in quiet hours or over a limit is not lent, and the authorizer, bindings and gates are asked. A run without a sign of life ends with
// its lease, and starts again as one whose process has died. Any process on the same store goes on with the run by its ticket: see
// [Lender.Keep] and [Lender.Return].
//
// It waits for the first run as long as the loan says, and returns what is due then. Runs are not lent to a caller whose ctx is done.
func (l *Lender) Lend(ctx context.Context, of Loan) (Lent, error) {
	of, err := l.checked(of)
	if err != nil {
		return Lent{}, err
	}
	lent, err := l.lend(ctx, of, nil)
	return l.inForce(ctx, lent), err
}

// lend is Lend for a loan that makes sense. The first claim takes the ends along that are given.
func (l *Lender) lend(ctx context.Context, of Loan, with *settler) (lent Lent, err error) {
	if err := l.s.declared.Keep(ctx); err != nil {
		return Lent{}, err
	}
	l.announce(ctx, &of)
	until := l.s.config.Clock.Now().Add(of.Wait)
	var w *waiting.Waiter
	leave := func() {
		if len(lent.Runs) == of.Most {
			w.Next() // there may be more
		}
		w.Leave(ctx.Err() == nil) // it asks again as soon as it can
	}
	if of.Wait > 0 && l.room.Listens() { // what comes behind this claim is heard
		w = l.room.Enter(of.queue())
		defer leave()
	}
	lent, err = l.now(ctx, of, with)
	if with != nil { // they wait for nothing else
		with.flush()
	}
	if len(lent.Runs) > 0 || err != nil || of.Wait <= 0 {
		return lent, err
	}
	if w == nil {
		w = l.room.Enter(of.queue())
		defer leave()
		w.Listen(ctx, until)
		lent, err = l.now(ctx, of, nil) // something may have come before
	}
	for len(lent.Runs) == 0 && err == nil && w.Wait(ctx, lent.NextDue, until) {
		l.announce(ctx, &of)
		lent, err = l.now(ctx, of, nil)
	}
	return lent, err
}

// queue names those that ask for the same.
func (of *Loan) queue() string {
	return strings.Join(of.Kinds, " ") + "\n" + strings.Join(of.Agents, " ")
}

// checked refuses a loan that makes no sense, and sets its defaults.
func (l *Lender) checked(of Loan) (Loan, error) {
	if of.Most == 0 {
		of.Most = 1
	}
	if of.Lease == 0 {
		of.Lease = DefaultLoanLease
	}
	if of.Worker == "" {
		of.Worker = l.s.config.Name
	}
	switch {
	case len(of.Kinds) == 0:
		return of, check.Invalid("kinds", "must name at least one kind that the worker runs")
	case len(of.Kinds) > MaxLoanKinds:
		return of, check.Invalid("kinds", "are %d: the limit is %d", len(of.Kinds), MaxLoanKinds)
	case of.Most < 0 || of.Most > MaxLent:
		return of, check.Invalid("most", "must be between 1 and %d, not %d", MaxLent, of.Most)
	case of.Lease < MinLoanLease || of.Lease > MaxLoanLease:
		return of, check.Invalid("lease", "must be between %s and %s, not %s", MinLoanLease, MaxLoanLease, of.Lease)
	case of.Wait < 0:
		return of, check.Invalid("wait", "must not be negative, not %s", of.Wait)
	}
	for _, kind := range of.Kinds {
		if err := check.ValidKind("kinds", kind); err != nil {
			return of, err
		}
		if err := model.NotReserved(kind); err != nil {
			return of, err
		}
	}
	of.Kinds = slices.Compact(slices.Sorted(slices.Values(of.Kinds)))
	if err := check.ValidText("worker", of.Worker, maxWorker); err != nil {
		return of, err
	}
	return of, (&Scope{Agents: of.Agents}).check(l.s)
}

// now lends what is due now; its claim takes the ends along that are given.
func (l *Lender) now(ctx context.Context, of Loan, with *settler) (Lent, error) {
	if of.Agents != nil && len(of.Agents) == 0 || ctx.Err() != nil {
		return Lent{}, ctx.Err()
	}
	since := l.s.config.Clock.Now()
	o := &loan{Loan: of, lender: l, gone: func() bool { return ctx.Err() != nil }}
	o.handler.call = o.lend
	p := newPull(ctx, l.s, Scope{Agents: of.Agents, MaxTasks: of.Most, Idle: o.follows, loan: o})
	p.slots = slots.New(l.s.config.Clock, of.Most, 0, 1) // a worker takes none of this process
	defer p.close()
	if with != nil {
		p.settler = with
	}
	r, err := p.runBooked()
	lent := Lent{Runs: o.taken, NextDue: r.NextDueAt, since: since}
	if len(lent.Runs) > 0 { // what could not be had besides is no reason to keep them
		err = nil
	}
	return lent, err
}

// mostRenewals is how often runs are kept before their worker hears of them: a store that is slower than that is too slow for their leases.
const mostRenewals = 3

// inForce leaves out the runs whose leases have ended before their worker hears of them, as the store was slow since. What is left of the others is more
// than half of a lease. Those of which that is not known are given back, as no worker begins them: otherwise each would count as a crash.
func (l *Lender) inForce(ctx context.Context, lent Lent) Lent {
	var back []Returned
	tries := 0
	// guard: lent-late
	for len(lent.Runs) > 0 && l.s.config.Clock.Now().Sub(lent.since) > lent.Runs[0].Ticket.Lease/3 {
		lent.since = l.s.config.Clock.Now()
		tries++
		keeps := make([]Keep, len(lent.Runs))
		for i := range lent.Runs {
			keeps[i].Ticket = lent.Runs[i].Ticket
		}
		kept, err := l.Keep(ctx, keeps...)
		var held []LentRun
		for i := range lent.Runs {
			switch {
			case tries > mostRenewals || err != nil || kept[i].Err != nil:
				back = append(back, Returned{Ticket: lent.Runs[i].Ticket})
			case kept[i].Held:
				held = append(held, lent.Runs[i])
			}
		}
		lent.Runs = held
	}
	// guard: lent-late-back
	if len(back) > 0 {
		_, _ = l.Return(context.WithoutCancel(ctx), back...) // else they wait for their leases
	}
	return lent
}

// follows reports whether the worker asks again, so that what is due next need not be known now.
func (o *loan) follows(time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.taken) > 0
}

// lend is the handler: it hands runs out.
func (o *loan) lend(_ context.Context, runs []*run, outcomes []error) {
	for i, r := range runs {
		outcomes[i] = o.take(r)
	}
}

// take hands a run out, or has it released if its caller has gone.
func (o *loan) take(r *run) error {
	// guard: lent-unasked
	if o.gone() {
		return ErrStopping
	}
	t, err := decodeTask[json.RawMessage](r)
	if err != nil {
		return err
	}
	at := r.pull.heartbeat.RunOf(r.claimed)
	lent := LentRun{Task: t, Timeout: longestTimeout(r.pull.s.base, []*run{r}), Prints: r.pull.s.base.Config.Outputs != nil}
	lent.Ticket = Ticket{
		Partition: at.Partition, Fence: at.Fence, Index: at.Index, Agent: at.Agent, ID: at.ID, Kind: r.claimed.Kind, Worker: o.Worker,
		Due: r.claimed.Due, Claimed: moment.Of(r.info.Claimed), Lease: o.Lease, Timeout: lent.Timeout, Crashes: r.claimed.Crashes, Ref: []byte(at.Ref),
		Attempt: r.info.Attempt, Turn: r.chunk().Turn,
	}
	o.lender.remember(r.claimed, lent.Ticket.run(), o.Lease)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.taken = append(o.taken, lent)
	return errLent
}

// handlerOf is what runs a kind in a pull; nil for nothing.
func handlerOf(p *pull, kind string) *handler {
	if o := p.scope.loan; o != nil && slices.Contains(o.Kinds, kind) {
		return &o.handler
	}
	p.s.mu.RLock()
	defer p.s.mu.RUnlock()
	return p.s.handlers[kind]
}

// kindsOf are the kinds that a pull claims, not to be changed.
func kindsOf(p *pull) []string {
	if o := p.scope.loan; o != nil {
		return append(slices.Clip(o.Kinds), check.Everywhere...) // as every process that claims anything
	}
	return claimed(p.s)
}

// leaseFor is how long a pull holds runs of a kind.
func leaseFor(p *pull, kind string) time.Duration {
	if o := p.scope.loan; o != nil { // tells too: a claim with two leases is a slow one
		return o.Lease
	}
	return p.s.base.Kind(kind).Lease
}

// runner is the name of what runs the tasks of a pull, for their history.
func runner(p *pull) string {
	if o := p.scope.loan; o != nil {
		return o.Worker
	}
	return p.s.config.Name
}

// tagOf is the beginning of the nonces of claims for a worker: the same on each process.
func tagOf(worker string) string {
	sum := sha256.Sum256([]byte(worker))
	return "w" + base32.StdEncoding.EncodeToString(sum[:])[:store.NonceLen/2-1]
}

// nonceOf is a nonce for a claim of a pull.
func nonceOf(p *pull) string {
	if o := p.scope.loan; o != nil {
		return tagOf(o.Worker) + leases.Nonce(p.s.nonce)[store.NonceLen/2:]
	}
	return leases.Nonce(p.s.nonce)
}
