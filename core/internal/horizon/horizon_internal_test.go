package horizon

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/slots"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// host pulls from one partition, in a series, at times that a test sets.
type host struct {
	t      *testing.T
	series *Series
	slots  *slots.Slots
	pull   *Outlook
	now    time.Time
}

func newHost(t *testing.T, rivals int) *host {
	t.Helper()
	h := &host{t: t, slots: slots.New(model.SystemClock{}, 4, 0, 1), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	h.series = NewSeries(newPartitions(), h.slots, func() int { return rivals }, 0)
	h.next()
	return h
}

// next begins another pull.
func (h *host) next() {
	h.pull = &Outlook{}
	h.pull.Aim(h.series.of, h.series, nil, nil)
}

// in is a time of the store.
func (h *host) in(d time.Duration) moment.Millis { return moment.Of(h.now.Add(d)) }

// ready is whether the pull asks at a time.
func (h *host) ready(at time.Time) bool {
	due, _ := h.pull.readyAt(at, moment.Of(at), 0)
	return len(due) > 0
}

// claims sends a claim, and answers it after what happens meanwhile.
func (h *host) claims(c *store.Claim, meanwhile func()) {
	h.pull.Asking(h.pull.targets)
	sent := h.now
	meanwhile()
	c.Now = h.in(0)
	h.pull.Observe(h.t.Context(), h.pull.targets[0], &Answer{
		Request: &store.ClaimRequest{}, Claim: c, Sent: sent, Slots: h.slots, Patience: slots.SuspectsLinger,
	})
}

// looks sends a look, and answers it.
func (h *host) looks(next moment.Millis) {
	h.pull.Asking(h.pull.targets)
	looks := make([]store.Look, len(h.pull.targets))
	for i := range looks {
		looks[i] = store.Look{Now: h.in(0), NextDue: next}
	}
	h.pull.Looked(h.t.Context(), h.pull.targets, make([]store.LookRequest, len(looks)), looks, h.now)
}

func TestWhenAPartitionIsAsked(t *testing.T) {
	t.Parallel()
	const never = time.Duration(-1)
	due := func(h *host, d time.Duration) *store.Claim { return &store.Claim{Look: store.Look{NextDue: h.in(d)}} }
	brought := func(h *host, d time.Duration) *store.Claim {
		c := due(h, d)
		c.Tasks = make([]store.Claimed, 1)
		return c
	}
	nothing := func() {}
	for name, c := range map[string]struct {
		rivals  int
		befalls func(h *host)
		want    time.Duration
	}{
		"with nothing due":                      {0, func(h *host) { h.claims(&store.Claim{}, nothing) }, never},
		"when something is due":                 {0, func(h *host) { h.claims(due(h, 5*time.Second), nothing) }, 5 * time.Second},
		"at once while more is due":             {0, func(h *host) { h.claims(brought(h, 0), nothing) }, 0},
		"when something sooner is announced":    {0, func(h *host) { h.claims(due(h, 5*time.Second), nothing); h.series.Expect(0, h.in(time.Second)) }, time.Second},
		"not when something later is announced": {0, func(h *host) { h.claims(due(h, time.Second), nothing); h.series.Expect(0, h.in(5*time.Second)) }, time.Second},
		"when a run of it is due again":         {0, func(h *host) { h.claims(brought(h, 5*time.Second), nothing); h.pull.Settle(0, h.in(2*time.Second)) }, 2 * time.Second},
		"when the earliest that is announced is due": {0, func(h *host) {
			h.claims(due(h, 5*time.Second), nothing)
			h.series.Expect(0, h.in(time.Second))
			h.series.Expect(0, h.in(2*time.Second))
		}, time.Second},
		"when the earliest run of it is due again": {0, func(h *host) {
			h.claims(due(h, 5*time.Second), nothing)
			h.pull.Settle(0, h.in(time.Second))
			h.pull.Settle(0, h.in(2*time.Second))
		}, time.Second},
		"at once if the next claim has brought something": {0, func(h *host) {
			h.looks(h.in(-time.Second))
			h.claims(due(h, -time.Second), nothing)
			h.claims(brought(h, -time.Second), nothing)
		}, 0},
		"when what came before the claim is due":   {0, func(h *host) { h.series.Expect(0, h.in(time.Second)); h.claims(due(h, 5*time.Second), nothing) }, 5 * time.Second},
		"when what came while it was asked is due": {0, func(h *host) { h.claims(due(h, 5*time.Second), func() { h.series.Expect(0, h.in(time.Second)) }) }, time.Second},
		// The leases of a process that was killed end together, as do pauses until the morning, and a claim ends some of them.
		"at once while leases or pauses are over": {0, func(h *host) {
			h.looks(h.in(-time.Second))
			h.claims(&store.Claim{Look: store.Look{NextLease: h.in(-time.Second)}}, nothing)
		}, 0},
		"after a while if it has nothing for this": {0, func(h *host) { h.looks(h.in(-time.Second)); h.claims(due(h, -time.Second), nothing) }, leftFor},
		"at once if a run makes room then":         {0, func(h *host) { h.looks(h.in(-time.Second)); h.claims(due(h, -time.Second), nothing); h.pull.Freed(0) }, 0},
		"at once if something else is due by now":  {0, func(h *host) { h.claims(due(h, -time.Second), nothing) }, 0},
		"at once if a run has made room meanwhile": {0, func(h *host) { h.claims(due(h, 5*time.Second), func() { h.pull.Freed(0) }) }, 0},
		"after rivals that were faster":            {1, func(h *host) { h.claims(due(h, time.Second), nothing) }, time.Second + behindLoser},
		"before rivals if it was faster":           {1, func(h *host) { h.claims(brought(h, time.Second), nothing) }, time.Second},
		"at once if there are no rivals":           {0, func(h *host) { h.claims(due(h, time.Second), nothing) }, time.Second},
		"after rivals, of what a look has found":   {1, func(h *host) { h.claims(&store.Claim{}, nothing); h.looks(h.in(0)) }, behindLoser},
		"never as it does not answer":              {0, func(h *host) { h.claims(&store.Claim{Look: store.Look{Err: assert.AnError}}, nothing) }, never},
		"at once when it answers again": {0, func(h *host) {
			h.claims(&store.Claim{Look: store.Look{Err: assert.AnError}}, nothing)
			h.looks(h.in(-time.Second))
		}, 0},
		"the next pull asks at once": {0, func(h *host) {
			h.looks(h.in(-time.Second))
			h.claims(due(h, -time.Second), nothing)
			h.next()
		}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, c.rivals)
			c.befalls(h)
			got := never
			for d := time.Duration(0); d < 10*time.Second && got == never; d += time.Millisecond {
				if h.ready(h.now.Add(d)) {
					got = d
				}
			}
			assert.Equal(t, c.want, got)
		})
	}
}

// partition is one whose tasks run one at a time, over all processes: the others wait in a line that is due as soon as the run has ended.
type partition struct {
	*host

	due, line []moment.Millis // of tasks that wait, the earliest first, and of those that wait for room
	running   string          // who runs one: "host" or "rival"; empty for nobody
	ends      time.Time       // when
	opened    bool            // the line may be looked at
	hears     bool            // no wake-up is lost
	ended     int
	claimed   int // claims of the host
}

const (
	runsFor   = 20 * time.Millisecond
	looksEach = time.Second // a wake-up may be lost: so long, and no longer, that delays
)

// nextDue is what the partition answers.
func (p *partition) nextDue() (next moment.Millis) {
	if len(p.due) > 0 {
		next = p.due[0]
	}
	if p.opened {
		next = base.Earlier(next, p.in(0))
	}
	if p.running != "" {
		next = base.Earlier(next, p.in(time.Minute)) // the lease
	}
	return next
}

// take claims for a process what is due, and reports whether it has got something.
func (p *partition) take(who string) bool {
	p.opened = false
	for len(p.due) > 0 && p.due[0] <= p.in(0) {
		p.line, p.due = append(p.line, p.due[0]), p.due[1:]
	}
	if p.running != "" || len(p.line) == 0 {
		return false
	}
	p.line = p.line[1:]
	p.running, p.ends = who, p.now.Add(runsFor)
	return true
}

// add adds a task, of which the host hears or does not.
func (p *partition) add(d time.Duration, heard bool) {
	at := p.in(d)
	i, _ := slices.BinarySearch(p.due, at)
	if p.due = slices.Insert(p.due, i, at); (heard || p.hears) && i == 0 {
		p.series.Expect(0, at)
	}
}

// passes lets time pass, and runs end in it; the host hears of the room that they make, or does not if they are those of a rival.
func (p *partition) passes(d time.Duration, heard bool) {
	until := p.now.Add(d)
	for p.running != "" && !p.ends.After(until) {
		who := p.running
		p.now, p.running = p.ends, ""
		p.ended++
		if p.opened = len(p.line) > 0; p.opened && (who == "host" || heard || p.hears) {
			p.series.Expect(0, p.in(0))
			if who == "host" {
				p.pull.Freed(0)
			}
		}
	}
	p.now = until
}

// step is a pull of the host. It returns when the next one begins by itself.
func (p *partition) step(meanwhile func()) time.Time {
	p.next()
	for {
		if len(p.pull.Old(p.now, p.in(0), looksEach)) > 0 {
			p.looks(p.nextDue())
		}
		due, again := p.pull.readyAt(p.now, p.in(0), 0)
		switch {
		case len(due) > 0:
			p.claim(meanwhile)
		case !again.IsZero():
			p.passes(again.Sub(p.now), false)
		default:
			again = p.pull.targets[0].asked.Add(looksEach)
			if next := p.series.Next(); next != 0 && next.Time().Before(again) {
				again = next.Time()
			}
			return again
		}
	}
}

// claim is one of the host.
func (p *partition) claim(meanwhile func()) {
	c := &store.Claim{}
	p.claimed++
	p.claims(c, func() {
		if p.take("host") {
			c.Tasks = make([]store.Claimed, 1)
		}
		c.NextDue = p.nextDue()
		meanwhile()
	})
}

// sleeps is the host until a time, or until it hears of something.
func (p *partition) sleeps(until time.Time) {
	if p.running != "" && p.ends.Before(until) {
		p.passes(p.ends.Sub(p.now), false)
	}
	select {
	case <-p.series.Earlier():
	default:
		p.passes(max(until.Sub(p.now), time.Millisecond), false)
	}
}

// FuzzWhatIsDueIsAskedFor has a host pull from a partition with one place to run in, beside a rival, while tasks come and wake-ups are lost: whatever
// has happened, each task runs within the time between two looks for each that runs before it, and no claim is made for nothing in a circle.
func FuzzWhatIsDueIsAskedFor(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		does := make([]byte, random.IntN(60))
		for i := range does {
			does[i] = byte(random.IntN(256))
		}
		f.Add(does)
	}
	f.Fuzz(func(t *testing.T, does []byte) {
		if len(does) > 200 {
			return
		}
		p, delay := &partition{host: newHost(t, 1), hears: len(does)%2 == 0}, looksEach
		if p.hears {
			delay = behindLoser
		}
		added := 0
		deed := func(b byte) {
			switch arg := int(b / 8); b % 8 {
			case 0, 1:
				p.add(time.Duration(arg)*20*time.Millisecond, b%8 == 0)
				added++
			case 2:
				p.take("rival")
			default:
				p.passes(time.Duration(arg)*time.Millisecond, b%8 == 3)
			}
		}
		for i := 0; i < len(does); i++ {
			if does[i]%8 < 6 {
				deed(does[i])
				continue
			}
			p.step(func() {
				if i+1 < len(does) && does[i]%8 == 7 {
					i++
					deed(does[i])
				}
			})
		}
		last := p.now.Add(32 * 20 * time.Millisecond)
		for p.ended < added {
			require.Less(t, p.now.Sub(last), time.Duration(added+1)*(delay+2*runsFor), "%d of %d tasks have run", p.ended, added)
			p.sleeps(p.step(func() {}))
		}
		require.LessOrEqual(t, p.claimed, len(does)+2*added, "claims for %d tasks", added)
	})
}
