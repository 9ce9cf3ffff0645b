package redisstore

// How the answers to Find become a page: merged, read and checked.

import (
	"context"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// merged are the tasks that the page may have, in order, and where all of them have been: nil at the end. Tasks after the place to which a partition
// has looked do not count, as that partition may have some before them.
func (f *finding) merged() (all []found, end *findMark) {
	for i := range f.lines {
		if l := &f.lines[i]; !l.over && (end == nil || f.compare(&l.end, end) < 0) {
			end = &l.end
		}
	}
	for i := range f.lines {
		for _, t := range f.lines[i].found {
			outer := t.mark
			outer.inner = ""
			if end == nil || f.compare(&outer, end) <= 0 {
				all = append(all, t)
			}
		}
	}
	store.Sort(all, func(a, b *found) int { return f.compare(&a.mark, &b.mark) })
	return all, end
}

// fill reads the found tasks, as far as the page has room, and sets where the next one begins.
func (f *finding) fill(ctx context.Context) error {
	all, end := f.merged()
	for len(all) > 0 && f.open() {
		if all[0].id == "" {
			if err := f.queue(ctx, &all[0]); err != nil {
				return err
			}
			all = all[1:]
			continue
		}
		n, err := f.read(ctx, all)
		if err != nil {
			return err
		}
		all = all[n:]
	}
	switch {
	case f.page.Next != "": // in the middle of the tasks that were read
	case len(all) > 0:
		f.page.Next = f.page.Tasks[len(f.page.Tasks)-1].Cursor
	case end != nil:
		f.page.Next = end.String()
	}
	return nil
}

// open reports whether the page takes more.
func (f *finding) open() bool {
	return f.page.Next == "" && len(f.page.Tasks) < f.q.Limit && (f.room > 0 || len(f.page.Tasks) == 0)
}

// read reads the first of some tasks, of so many agents at once, and returns how many these are.
func (f *finding) read(ctx context.Context, all []found) (int, error) {
	ids, agents, n := f.first(all)
	calls := make([]call, len(agents))
	for i, agent := range agents {
		calls[i] = f.s.readCall(agent, ids[agent], reading{claimed: true, room: max(f.room, 0), first: true})
	}
	replies, err := f.s.eval(ctx, "read", calls)
	if err != nil {
		return 0, err
	}
	stored := map[[2]string]*store.Stored{}
	for i, agent := range agents {
		tasks, _, err := parseRead(agent, ids[agent], replies[i], false)
		if err != nil {
			return 0, wrap("read", err)
		}
		for k := range tasks {
			stored[[2]string{agent, tasks[k].ID}] = &tasks[k]
		}
	}
	for i := range all[:n] {
		t := stored[[2]string{all[i].agent, all[i].id}]
		if t == nil && i > 0 || !f.open() { // tasks that did not fit are read again
			return i, nil
		}
		if t != nil {
			f.add(t, &all[i])
		}
	}
	return n, nil
}

// first are the first of some tasks that are read in one round trip, by agent, the agents in the order in which they come, and how many these are.
func (f *finding) first(all []found) (ids map[string][]string, agents []string, n int) {
	ids = map[string][]string{}
	for most := min(len(all), f.q.Limit-len(f.page.Tasks)); n < most && all[n].id != ""; n++ {
		t := &all[n]
		if of := ids[t.agent]; len(of) == mostRead || of == nil && len(agents) == readAtOnce {
			break
		} else if of == nil {
			agents = append(agents, t.agent)
		}
		ids[t.agent] = append(ids[t.agent], t.id)
	}
	return ids, agents, n
}

// add puts a task on the page if it is still where it was found.
func (f *finding) add(t *store.Stored, at *found) {
	there := false
	switch f.q.Place {
	case store.PlaceFailed:
		there = t.Status == store.StatusFailed && !t.Dropped && int64(t.Finished) == at.mark.score
	case store.PlaceRunning:
		there = t.Status == store.StatusInProgress
		t.Lease, t.Holder = at.lease, at.holder
		fence, _ := strconv.ParseInt(at.mark.member, 10, 64) // the search found it, so it is a number
		t.Updated = max(t.Updated, claimedAt(store.Fence(fence)))
	case store.PlaceOverdue:
		there = t.Status == store.StatusWaiting && !t.Parked && t.Due <= f.page.Now
	}
	if there {
		f.room -= len(t.Body) + len(t.State) + len(t.Record) + len(t.Order)
		t.Cursor = at.mark.String()
		f.page.Tasks = append(f.page.Tasks, *t)
	}
}

// queue adds the due tasks of an agent that has many, as far as the page has room.
func (f *finding) queue(ctx context.Context, of *found) error {
	q := store.List{Agent: of.agent, Statuses: []store.Status{store.StatusWaiting}, Limit: f.q.Limit - len(f.page.Tasks)}
	if f.at != nil && f.at.member == of.mark.member {
		q.After = f.at.inner
	}
	page, err := f.s.List(ctx, q)
	if err != nil {
		return err
	}
	for i := range page.Tasks {
		t := &page.Tasks[i]
		// The list continues with running and parked tasks, some of which are about to be put back.
		if t.Due > f.page.Now || !strings.HasPrefix(t.Cursor, "w") {
			return nil
		}
		of.mark.inner = t.Cursor
		f.add(t, of)
	}
	if page.Next != "" {
		of.mark.inner = page.Next
		f.page.Next = of.mark.String()
	}
	return nil
}
