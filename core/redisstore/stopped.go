package redisstore

// Whether a store has stopped: no process announces itself, and no run holds its lease. Tasks of dead processes are taken back.

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/audit"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// stopped refuses a store that is used.
func (m *mover) stopped(ctx context.Context) error {
	processes, err := m.old.Processes(ctx)
	if err != nil {
		return err
	}
	maps.DeleteFunc(processes, func(tag string, _ []byte) bool { return strings.HasPrefix(tag, "-") })
	if n := len(processes); n > 0 {
		return fmt.Errorf("processes that use the store: %d (duly processes lists them): stop them, then try again; "+
			"one that was killed is forgotten within a minute or two", n)
	}
	if err := m.unlimited(ctx); err != nil {
		return err
	}
	now, err := m.old.db.Time(ctx, verbRepartition)
	if err != nil {
		return err
	}
	var tasks int64
	var last moment.Millis
	for _, p := range m.old.db.Parts {
		n, end, err := m.running(ctx, p, now)
		if err != nil {
			return err
		}
		tasks, last = tasks+n, max(last, end)
	}
	if last == 0 {
		return nil
	}
	return fmt.Errorf("tasks that run under a lease: %d; the last lease ends at %s unless it is extended: stop the processes that run them, then try again",
		tasks, time.UnixMilli(int64(last)).UTC().Format(time.RFC3339))
}

// unlimited refuses a store with limits of all agents, whose counts would have to be merged, or with tasks that still wait in line for one.
func (m *mover) unlimited(ctx context.Context) error {
	var limits, lined, awaits int64
	for _, p := range m.old.db.Parts {
		pipe := m.old.db.Client.Pipeline()
		set, waiting, await := pipe.HLen(ctx, p.Key("limits")), pipe.HLen(ctx, p.Key("lined")), pipe.HLen(ctx, p.Key("awaits"))
		if _, err := pipe.Exec(ctx); err != nil {
			return call.Wrap(verbRepartition, err)
		}
		limits, lined, awaits = limits+set.Val(), lined+waiting.Val(), awaits+await.Val()
	}
	switch {
	case limits > 0:
		return fmt.Errorf("limits and budgets that are set: %d (duly limit list and duly budget list show them): what they have counted is not moved, so lift them, try again, and set them again (those of a file are set by the next start)", limits)
	case awaits > 0:
		return fmt.Errorf("tasks that wait for a signal: %d: what they wait for is not moved; signal or cancel them, then try again", awaits)
	case lined > 0:
		return fmt.Errorf("tasks that still wait in line for a limit: %d: let a daemon run for a moment, then try again", lined)
	default:
		return nil
	}
}

// running counts the tasks of claims whose leases have not ended, and returns when the last one ends. The ends of holds are among
// the leases.
func (m *mover) running(ctx context.Context, p layout.Partition, now moment.Millis) (tasks int64, last moment.Millis, err error) {
	for at := 0; ; at += pageEntries {
		page := m.old.db.Client.Do(ctx, "ZRANGE", p.Key("leases"), at, at+pageEntries-1, "WITHSCORES")
		if page.Err() != nil {
			return 0, 0, call.Wrap(verbRepartition, page.Err())
		}
		all := layout.ScoresOf(page)
		fences := []any{"HMGET", p.Key("claims")}
		for _, lease := range all {
			if lease.Score > now && !strings.HasPrefix(lease.Member, "@") {
				fences, last = append(fences, lease.Member), max(last, lease.Score)
			}
		}
		n, err := marked(ctx, &m.old.db, fences)
		if tasks += n; err != nil {
			return 0, 0, err
		}
		if len(all) < pageEntries {
			return tasks, last, nil
		}
	}
}

// marked counts the tasks that run, by the answer to a command that reads their claims.
func marked(ctx context.Context, db *call.DB, read []any) (tasks int64, err error) {
	if len(read) == 2 {
		return 0, nil // no claim
	}
	marks, err := db.Client.Do(ctx, read...).Slice()
	if err != nil {
		return 0, call.Wrap(verbRepartition, err)
	}
	for _, mark := range marks {
		runs := layout.Text(mark) // a mark for each task, then the nonce
		tasks += int64(strings.Count(runs[:max(len(runs)-nonceLen, 0)], "0"))
	}
	return tasks, nil
}

// nonceLen is the length of the nonce of a claim.
const nonceLen = 16

// recover takes back the tasks of leases that have ended, and ends holds, as any claim does: these ask for no task.
func (m *mover) recover(ctx context.Context) error {
	for {
		calls, err := m.overdue(ctx)
		if err != nil || len(calls) == 0 {
			return err
		}
		if _, err := m.old.db.Run(ctx, verbRepartition, calls); err != nil {
			return err
		}
	}
}

// overdue is a claim of nothing for each partition with a lease, or a hold, that has ended.
func (m *mover) overdue(ctx context.Context) ([]call.Call, error) {
	now, err := m.old.db.Time(ctx, verbRepartition)
	if err != nil {
		return nil, err
	}
	pipe, ended := m.old.db.Client.Pipeline(), make([]*redis.Cmd, len(m.old.db.Parts))
	for i, p := range m.old.db.Parts {
		ended[i] = pipe.Do(ctx, "ZRANGEBYSCORE", p.Key("leases"), "-inf", int64(now), "LIMIT", 0, 1)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, call.Wrap(verbRepartition, err)
	}
	var calls []call.Call
	for i := range ended {
		if some, _ := ended[i].Slice(); len(some) > 0 {
			r := store.ClaimRequest{Nonce: newNonce(), Lease: time.Minute}
			calls = append(calls, call.Call{Script: &m.old.db.Scripts.Claim, Partition: i, Args: claimArgs(&r, "")})
		}
	}
	return calls, nil
}

// auditAll audits all partitions, a page of each at a time, and returns the first faults of each.
func (s *Store) auditAll(ctx context.Context, repair bool) ([]audit.Fault, error) {
	pages := make([]audit.Page, len(s.db.Parts))
	for i := range pages {
		pages[i] = audit.Page{Partition: i, Repair: repair}
	}
	var faults []audit.Fault
	for len(pages) > 0 {
		audited, err := s.Audit(ctx, pages)
		if err != nil {
			return nil, err
		}
		var more []audit.Page
		for i, a := range audited {
			faults = append(faults, a.Faults...)
			if a.Next != "" {
				pages[i].Cursor = a.Next
				more = append(more, pages[i])
			}
		}
		pages = more
	}
	return faults, nil
}
