package view

// How the answers to Find become a page: merged, read and checked; and how tasks that wait for signals are found, which no script does.

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
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
	calls := make([]call.Call, len(agents))
	for i, agent := range agents {
		calls[i] = f.s.readCall(agent, ids[agent], reading{claimed: true, room: max(f.room, 0), first: true})
	}
	replies, err := f.s.db.Run(ctx, "read", calls)
	if err != nil {
		return 0, err
	}
	stored := map[[2]string]*store.Stored{}
	for i, agent := range agents {
		tasks, _, err := parseRead(agent, ids[agent], replies[i], false)
		if err != nil {
			return 0, call.Wrap("read", err)
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
		t.Updated = max(t.Updated, layout.ClaimedAt(store.Fence(fence)))
	case store.PlaceOverdue:
		there = t.Status == store.StatusWaiting && !t.Parked && t.Due <= f.page.Now
	case store.PlaceAwaiting:
		there = t.Status == store.StatusWaiting
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

// behindAll is a member that comes after all others: ids of agents are encoded.
const behindAll = "\xff"

// awaiter is a task that waits for a key, as a step of a scan has it.
type awaiter struct {
	found

	key string
}

// askAwaiting finds what the page may have: partition by partition, in each as a scan goes, and of one step of it by name. The inner part of a mark
// is where the step begins. Steps are those of one round trip: no page looks at more.
func (f *finding) askAwaiting(ctx context.Context) error {
	ctx, cancel := f.s.db.Patience(ctx, "read")
	defer cancel()
	at := cmp.Or(f.at, &findMark{member: behindAll, inner: "0"})
	if _, err := strconv.ParseUint(at.inner, 10, 64); err != nil {
		return ErrCursor
	}
	now, err := f.s.db.Time(ctx, "read")
	if err != nil {
		return call.Wrap("read", err)
	}
	f.page.Now = now
	steps, err := f.scan(ctx, at)
	if err != nil {
		return call.Wrap("read", err)
	}
	all, line, err := f.gather(steps, at)
	if err != nil {
		return call.Wrap("read", err)
	}
	for i := range f.lines {
		f.lines[i].over = true
	}
	line.found, err = f.untold(ctx, all)
	f.lines[0] = line
	return err
}

// gather are the tasks of some steps, as many as the page takes, and a line that says where the next page begins.
func (f *finding) gather(steps []scanStep, at *findMark) ([]awaiter, findLine, error) {
	var all []awaiter
	line := findLine{over: true}
	for i := range steps {
		waits, next, err := steps[i].waits(at.partition + i)
		if err != nil {
			return nil, line, err
		}
		if i == 0 && at.member != behindAll {
			waits = slices.DeleteFunc(waits, func(w awaiter) bool { return w.mark.member <= at.member })
		}
		if room := f.q.Limit - len(all); len(waits) > room { // the next page begins behind the last one of these
			all = append(all, waits[:room]...)
			line.over, line.end = false, all[len(all)-1].mark
			break
		}
		all = append(all, waits...)
		if next != "0" {
			line.over, line.end = false, findMark{partition: at.partition + i, member: behindAll, inner: next}
			break
		}
	}
	return all, line, nil
}

// scanStep is a step of a scan: where it begins, and what it returned.
type scanStep struct {
	from string
	cmd  *redis.ScanCmd
}

// scan makes a step in each partition from that of the mark on.
func (f *finding) scan(ctx context.Context, at *findMark) ([]scanStep, error) {
	pipe := f.s.db.Client.Pipeline()
	steps := make([]scanStep, len(f.s.db.Parts)-at.partition)
	for i := range steps {
		steps[i].from = "0"
		if i == 0 {
			steps[i].from = at.inner
		}
		cursor, _ := strconv.ParseUint(steps[i].from, 10, 64) // it was read before
		steps[i].cmd = pipe.HScan(ctx, f.s.db.Parts[at.partition+i].Key("awaits"), cursor, "", mostFound)
	}
	_, err := pipe.Exec(ctx)
	return steps, err
}

// waits are the tasks of a step, by name, and where the next one begins: "0" after the last.
func (s *scanStep) waits(partition int) ([]awaiter, string, error) {
	fields, next, err := s.cmd.Result()
	if err != nil {
		return nil, "", err
	}
	var all []awaiter
	for pair := range slices.Chunk(fields, 2) {
		agent, id, ok := strings.Cut(pair[0], ":")
		if !ok || len(pair) < 2 {
			continue // an audit says what has damaged it
		}
		w := awaiter{key: pair[1], found: found{id: id, mark: findMark{partition: partition, member: pair[0], inner: s.from}}}
		if w.agent, err = layout.Decode(agent); err != nil {
			return nil, "", err
		}
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b awaiter) int { return strings.Compare(a.mark.member, b.mark.member) })
	return slices.CompactFunc(all, func(a, b awaiter) bool { return a.mark.member == b.mark.member }), strconv.FormatUint(next, 10), nil
}

// untold are those of some waits whose signals have not come.
func (f *finding) untold(ctx context.Context, all []awaiter) ([]found, error) {
	if len(all) == 0 {
		return nil, nil
	}
	pipe := f.s.db.Client.Pipeline()
	marks := make([]*redis.StringCmd, len(all))
	for i := range all {
		w := &all[i]
		marks[i] = pipe.HGet(ctx, f.s.db.Parts[w.mark.partition].Key("awaits:"+layout.Encode(w.agent)+":"+w.key), w.id)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return nil, call.Wrap("read", err)
	}
	var out []found
	for i := range all {
		if mark := marks[i].Val(); mark != "" && !strings.HasPrefix(mark, "t") {
			out = append(out, all[i].found)
		}
	}
	return out, nil
}
