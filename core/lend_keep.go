package core

// Signs of life of runs that were lent: leases that are extended, and what runs report and print.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/leases"
	"github.com/seed-6f6f2c11/duly/core/internal/notices"
	"github.com/seed-6f6f2c11/duly/core/internal/printing"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/output"
)

// Keep is a sign of life of a lent run, with what it has to store.
type Keep struct {
	Ticket Ticket
	// Progress and Checkpoint replace those before; nil leaves them. The next run of this occurrence finds the checkpoint, however this one ends.
	Progress, Checkpoint json.RawMessage
	// Used is what the run has used so far, in all: what was not charged before is charged now, and not again when it ends.
	Used Usage
	// Number, if it is not zero, grows with each Keep of a run that stores something: one that comes behind a later one, as its call was held up, is
	// passed over.
	Number int64
	// Output is what the run has printed since; nil for nothing. It is stored beside everything else, and only if the run still has its task.
	Output *SentOutput
}

// SentOutput is a piece of what a lent run prints: what its worker has not sent yet, or again.
type SentOutput = output.Sent

// Kept is what becomes of a lent run.
type Kept struct {
	Held  bool  // false: the run is lost, and another worker may have the task. This one is to stop, and must not do what comes next
	Cause error // why it is to end, although it is held: [ErrCancelled], [ErrBudgetSpent] or [ErrTimeout]; nil if it goes on
	Order Order // who has cancelled it, and why
	Err   error // the store did not answer: nothing is known
	// Printed is how many bytes of the output need not be sent again, nor those in front of them; zero if the store did not take it.
	Printed int64
}

// Keep extends the leases of lent runs, and stores what they report, in one call of the store; a task that has something to store is read
// before. The answers are in the order of keeps. What is too large or no JSON is refused before any call.
//
// A run that has taken longer than its timeout is to end: its lease is extended for one more time at most.
func (l *Lender) Keep(ctx context.Context, keeps ...Keep) ([]Kept, error) {
	if len(keeps) > MaxLent {
		return nil, check.Invalid("runs", "are %d: the limit is %d a call", len(keeps), MaxLent)
	}
	for i := range keeps {
		if err := l.Check(&keeps[i]); err != nil {
			return nil, err
		}
	}
	out := make([]Kept, len(keeps))
	var extensions []store.Extension
	var of []int
	for i := range keeps {
		e, err := l.extensionFor(ctx, &keeps[i])
		switch {
		case err != nil:
			out[i].Err = err
		case e != nil:
			extensions, of = append(extensions, *e), append(of, i)
		}
	}
	if len(extensions) == 0 {
		return out, nil
	}
	answers, err := l.s.store.Extend(ctx, extensions)
	if err != nil {
		return nil, err
	}
	// guard: lent-busy
	l.announceKept(ctx, keeps)
	printed, hurry := l.prints(len(of)), false
	for k, i := range of {
		out[i] = l.heard(&keeps[i], &extensions[k], &answers[k])
		hurry = hurry || !out[i].Held || out[i].Cause != nil
		// guard: lent-output-held
		if out[i].Held {
			printed.add(&keeps[i].Ticket, keeps[i].Output, false, &out[i].Printed)
		}
	}
	if !hurry { // a run that has to end hears of it at once: what was printed comes again
		printed.store(ctx)
	}
	return out, nil
}

// heard is the answer to a sign of life, of which this process notes what it needs.
func (l *Lender) heard(k *Keep, lease *store.Extension, answer *store.Extended) Kept {
	as := l.keptAs(&k.Ticket, answer)
	if p := lease.Progress; !as.Held {
		l.learn(k.Ticket.run(), nil, 0, 0)
	} else if len(p) > 0 {
		l.learn(p[0].Run, p[0].State, p[0].Number, k.Ticket.Lease)
	}
	if c := answer.Crossed; c != nil {
		notices.Crossed(l.s.base, c.Budgets)
	}
	return as
}

// prints are pieces of the output of lent runs, to be stored in one call.
type prints struct {
	in     output.Keeper // nil if the store keeps none
	chunks []output.Chunk
	taken  []*int64
}

func (l *Lender) prints(most int) *prints {
	return &prints{in: l.s.base.Config.Outputs, taken: make([]*int64, 0, most)}
}

// add adds what a run has printed, if it has; taken is set to its end once that is stored.
func (p *prints) add(t *Ticket, sent *output.Sent, last bool, taken *int64) {
	if sent == nil || p.in == nil || sent.Text == "" && !last {
		return
	}
	about := output.Chunk{Agent: t.Agent, ID: t.ID, Turn: t.Turn, Fence: t.Fence, Attempt: t.Attempt, Claimed: t.Claimed}
	p.chunks, p.taken = append(p.chunks, sent.Chunk(about, last)), append(p.taken, taken)
}

// store stores them. No run fails by what it prints: what was not taken comes again with what follows, or is left out.
func (p *prints) store(ctx context.Context) {
	if len(p.chunks) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), printing.Within)
	defer cancel()
	errs, err := p.in.Print(ctx, p.chunks)
	for i, taken := range p.taken {
		// What comes a second time is refused as what is lost.
		if err == nil && (errs[i] == nil || errors.Is(errs[i], store.ErrLeaseLost)) {
			*taken = p.chunks[i].At + int64(len(p.chunks[i].Data))
		}
	}
}

// Check refuses a sign of life that cannot be stored, as Keep does: with it one that is wrong is no matter of the others.
func (l *Lender) Check(k *Keep) error {
	if err := l.checkTicket(&k.Ticket); err != nil {
		return err
	}
	if err := NewTestRun(nil).Use(k.Used); err != nil {
		return err
	}
	if err := k.Output.Check(); err != nil {
		return err
	}
	for name, data := range map[string]json.RawMessage{"progress": k.Progress, "checkpoint": k.Checkpoint} {
		most := l.s.config.MaxResult
		if name == "checkpoint" {
			most = MaxCheckpoint
		}
		switch {
		case len(data) > most:
			return check.Invalid(name, "is %d bytes long: the limit is %d", len(data), most)
		case data != nil && !json.Valid(data):
			return check.Invalid(name, "must be JSON")
		}
	}
	return nil
}

// checkTicket refuses a ticket that no lent run of this store has.
func (l *Lender) checkTicket(t *Ticket) error {
	if t.Partition != store.PartitionOf(t.Agent, l.s.store.Partitions()) || t.Index < 0 || t.Fence <= 0 {
		return check.Invalid("ticket", "is not of this store: it may have other partitions since")
	}
	return nil
}

// overtime is how long a run is held still that has taken longer than its timeout, so that its worker can report it.
const overtime = 30 * time.Second

// extensionFor is the extension that a sign of life is; nil if the run is over.
func (l *Lender) extensionFor(ctx context.Context, k *Keep) (*store.Extension, error) {
	t := &k.Ticket
	e := &store.Extension{Partition: t.Partition, Fence: t.Fence, Lease: leases.Stored(t.Lease)}
	if t.Timeout > 0 {
		left := t.Claimed.Add(t.Timeout + overtime).Sub(l.s.base.StoreNow())
		// guard: lent-timeout
		if left <= 0 {
			return nil, nil //nolint:nilnil // it is lost, and nothing is wrong
		}
		e.Lease = min(e.Lease, left)
	}
	if k.Progress == nil && k.Checkpoint == nil && k.Used == nil {
		return e, nil
	}
	c, err := l.read(ctx, t, k.Number-1)
	if c == nil {
		return nil, err
	}
	var state codec.State
	if err := state.Decode(c.State); err != nil {
		return nil, fmt.Errorf("decode state: %w", err)
	}
	if k.Progress != nil {
		state.Progress = k.Progress
	}
	if k.Checkpoint != nil {
		state.Checkpoint = k.Checkpoint
	}
	e.Progress = []store.Progress{{Run: t.run(), State: state.Encode(), Number: k.Number, Used: k.Used.Amounts()}}
	return e, nil
}

// run is the run of a ticket.
func (t *Ticket) run() store.Run {
	return store.Run{Partition: t.Partition, Fence: t.Fence, Index: t.Index, Agent: t.Agent, ID: t.ID, Ref: string(t.Ref)}
}

// keptAs is the answer to a sign of life.
func (l *Lender) keptAs(t *Ticket, a *store.Extended) Kept {
	// guard: lent-held
	if a.Err != nil || !a.Held {
		return Kept{Err: a.Err}
	}
	out := Kept{Held: true}
	if t.Timeout > 0 && l.s.base.StoreNow() >= t.Claimed.Add(t.Timeout) {
		out.Cause = ErrTimeout
	}
	for _, e := range a.Ended {
		switch {
		case e.Index != t.Index:
		case e.Deleted:
			return Kept{}
		case e.Spent:
			out.Cause = ErrBudgetSpent
		default:
			out.Cause, out.Order = ErrCancelled, codec.Order(e.Order)
		}
	}
	return out
}

// announce stores what a worker runs that asks for runs, unless that was just done.
func (l *Lender) announce(ctx context.Context, of *Loan) { l.report(ctx, of.Worker, of.Kinds, true) }

// announceKept does so for workers that keep runs: one that is busy with long ones asks for no others, and is there all the same.
func (l *Lender) announceKept(ctx context.Context, keeps []Keep) {
	kinds := map[string][]string{}
	for i := range keeps {
		t := &keeps[i].Ticket
		kinds[t.Worker] = append(kinds[t.Worker], t.Kind)
	}
	for worker, of := range kinds {
		l.report(ctx, worker, slices.Compact(slices.Sorted(slices.Values(of))), false)
	}
}

// report stores what a worker runs, unless that was just done. The kinds are all of them, or some: those that it has asked for here count then.
func (l *Lender) report(ctx context.Context, worker string, kinds []string, all bool) {
	if l.s.config.Presence == nil || worker == l.s.config.Name {
		return
	}
	kinds, due := l.seen(worker, kinds, all)
	if !due {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), base.LongestLook)
	defer cancel()
	info, err := json.Marshal(model.Process{Name: worker, Kinds: kinds, At: l.s.base.StoreNow().Time()})
	if err == nil {
		_, err = l.s.config.Presence.Announce(ctx, tagOf(worker), info, base.AnnounceFor)
	}
	if err == nil { // for explain, when it is gone
		_, err = l.s.config.Presence.Announce(ctx, base.LastTag+tagOf(strings.Join(kinds, " ")), info, base.LastFor)
	}
	if err != nil {
		l.s.config.Logger.DebugContext(ctx, "cannot announce a worker in the store", slog.Any("err", err))
	}
}

// sighting is when a worker was last reported, and with which kinds.
type sighting struct {
	at    time.Time
	kinds []string
}

// seen notes that a worker is there. It returns its kinds, and whether they are to be reported now.
func (l *Lender) seen(worker string, kinds []string, all bool) ([]string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.s.config.Clock.Now()
	maps.DeleteFunc(l.sightings, func(_ string, s sighting) bool { return now.Sub(s.at) >= base.AnnounceFor })
	last, known := l.sightings[worker]
	if known && !all {
		kinds = last.kinds
	}
	if known && now.Sub(last.at) < base.LiveEvery {
		return kinds, false
	}
	if l.sightings == nil {
		l.sightings = map[string]sighting{}
	}
	l.sightings[worker] = sighting{now, kinds}
	return kinds, true
}
