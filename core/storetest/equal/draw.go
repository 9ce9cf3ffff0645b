package equal

// What calls are about, drawn at random.

import (
	"bytes"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/breaker"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// draw draws what calls are about. It knows neither store.
type draw struct {
	clock      *given.Clock
	data       []byte // the choices that are left, a byte for each
	partitions int
	// tame calls are mostly such as most stores get nothing else of: small tasks of one level an agent, and claims of whatever is due.
	tame bool
	ids  int // of tasks, for each agent
	// quotas are those of agents, by the profile that has them; nil until one was set.
	quotas map[string]*store.Quota
	was    map[string]string // the profiles that agents have got
}

// mostly is false now and then, and more often while calls are not tame.
func (d *draw) mostly() bool { return d.tame && d.pick(8) > 0 }

// pick is the next choice, below n.
func (d *draw) pick(n int) int {
	if len(d.data) == 0 {
		return 0
	}
	c := d.data[0]
	d.data = d.data[1:]
	return int(c) % n
}

func (d *draw) agent() string { return agents[d.pick(len(agents))] }

// submission is a random task that is new or exists.
func (d *draw) submission() store.Submission {
	id := d.pick(d.ids)
	s := store.Submission{
		Agent: d.agent(), ID: fmt.Sprintf("t%02d", id), Kind: kinds[d.pick(len(kinds))],
		Level: store.Level(1 + d.pick(3)), Group: groupOf(fmt.Sprintf("t%02d", id)), Key: keys[d.pick(len(keys))],
	}
	s.Body = []byte("body " + s.ID)
	if id%4 == 0 { // too long to be held with their agents
		s.Body = bytes.Repeat(s.Body, 150)
	}
	if d.mostly() {
		s.Level, s.Group = store.Level(1+len(s.Agent)%3), ""
		if d.pick(3) == 0 {
			s.Due.After = time.Duration(d.pick(256)) * 10 * time.Millisecond
		}
		return s
	}
	switch d.pick(8) {
	case 0:
		s.Body = bytes.Repeat([]byte("body "+s.ID), 500+d.pick(256)*4)
	case 1: // a few of these are as much as one claim looks at
		s.Body = bytes.Repeat([]byte("body "+s.ID), (40+d.pick(256)/4)<<8)
	default:
	}
	if d.pick(8) == 0 {
		s.State = []byte("first")
	}
	if n := len(d.data); n%5 == 0 { // little room, so that some are refused; hours go by now and then
		s.Root = &breaker.Root{Agent: "root:{}", ID: keys[2+n/5%2], Most: 3 + n/10%6}
	}
	switch d.pick(4) {
	case 0:
		s.Due.After = time.Duration(d.pick(256)) * 10 * time.Millisecond
	case 1:
		s.Due.At = moment.Millis(d.clock.Now().UnixMilli()) + moment.Millis(d.pick(256)*10-1000)
	default:
	}
	return s
}

// groupOf is the group that all tasks with an id are submitted with; what replaces one may be of another.
func groupOf(id string) string { return groups[int(id[len(id)-1])%len(groups)] }
