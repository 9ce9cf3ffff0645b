package redisstore

// Profiles of agents, the due times that they change, and their quotas: what the scripts are given, and what they say.

import (
	"cmp"
	"context"
	"crypto/sha1" //nolint:gosec // it compares what two reads have seen
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/view"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Profile sets and deletes profiles; see [store.Tenants].
func (s *Store) Profile(ctx context.Context, changes []store.ProfileChange) ([]store.Effect, error) {
	calls := make([]call.Call, len(changes))
	for i, c := range changes {
		calls[i] = call.Call{Script: &s.db.Scripts.Profile, Partition: s.db.PartitionOf(c.Agent), Args: []any{
			layout.Encode(c.Agent), c.Was, c.Now, s.boundsText(&c), quotaText(c.Quota), readText(c.Recurring), tenantText(c.Tenant),
		}}
	}
	return s.effects(ctx, calls, parseEffect)
}

// tenantText is a tenant as it is stored; empty for none.
func tenantText(name string) string {
	if name == "" {
		return ""
	}
	return layout.Encode(name)
}

// boundsText is the bounds of a profile, as bounded.lua reads them.
func (s *Store) boundsText(c *store.ProfileChange) string {
	text := ""
	add := func(name, allows string) { text += fmt.Sprintf("%d:%s\t%s", len(name)+1+len(allows), name, allows) }
	for i := range c.Limits {
		add(bounds.LimitName(c.Limits[i].About), bounds.LimitText(&c.Limits[i], len(s.db.Parts)))
	}
	for i := range c.Budgets {
		add(bounds.BudgetName(c.Budgets[i].About), bounds.BudgetText(&c.Budgets[i], len(s.db.Parts)))
	}
	return text
}

// Replan gives waiting tasks other due times; see [store.Tenants].
func (s *Store) Replan(ctx context.Context, tasks []store.Replan) ([]store.Effect, error) {
	calls := make([]call.Call, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		calls[i] = call.Call{Script: &s.db.Scripts.Replan, Partition: s.db.PartitionOf(t.Agent), Args: []any{
			layout.Encode(t.Agent), t.ID, t.Version, int64(t.Was), int64(t.Due), t.State,
		}}
	}
	return s.effects(ctx, calls, parseEffect)
}

// addProfiles gives the tasks of a claim the profiles in a list.
func addProfiles(c *store.Claim, list any) error {
	profiles, err := view.ProfilesIn(list)
	for i := range c.Tasks {
		c.Tasks[i].Profile = profiles[c.Tasks[i].Agent]
	}
	return err
}

// Forget drops a page of an agent's remains; see [store.Tenants].
func (s *Store) Forget(ctx context.Context, r store.Remains) (string, error) {
	args := []any{layout.Encode(r.Agent), cmp.Or(r.Cursor, "0")}
	for _, group := range r.Groups {
		args = append(args, layout.GroupKey(r.Agent, group))
	}
	replies, err := s.db.Run(ctx, call.VerbControl, []call.Call{{Script: &s.db.Scripts.Forget, Partition: s.db.PartitionOf(r.Agent), Args: args}})
	if err != nil {
		return "", err
	}
	if len(replies[0]) != 2 {
		return "", call.Wrap(call.VerbControl, layout.ErrMalformed)
	}
	if next := layout.Text(replies[0][1]); next != "0" {
		return next, nil
	}
	return "", nil
}

// readText names tasks as they were read, for profile.lua. An id has no line breaks.
func readText(tasks []store.Stored) string {
	var b strings.Builder
	for i := range tasks {
		t := &tasks[i]
		sum := sha1.Sum(layout.Record(t.Level, t.ID, t.Kind, t.Key, t.Body)) //nolint:gosec // it compares what two reads have seen
		fmt.Fprintf(&b, "%x %s\n", sum, t.ID)
	}
	return b.String()
}

// quotaText is a quota as quota.lua reads it; empty for none.
func quotaText(q *store.Quota) string {
	if q.IsZero() {
		return ""
	}
	return fmt.Sprintf("%s|%d|%d|%d|%d", q.Mark(), q.Live, q.Recurring, q.Bytes, q.Submits)
}

// quotaFlag is how a task counts for the quota of its agent.
func quotaFlag(recurs, bound bool) byte {
	flag := byte('0')
	if recurs {
		flag++
	}
	if bound {
		flag += 2
	}
	return flag
}

// quotaFlags are the flags of some tasks, given by their places, and behind them the marks of the quotas that they were checked by, if any was. Empty if
// none counts.
func quotaFlags(tasks []store.Submission, members []int) string {
	some, marked := false, false
	for _, i := range members {
		some, marked = some || tasks[i].Recurs || tasks[i].Bound, marked || tasks[i].Mark != ""
	}
	if !some {
		return ""
	}
	var b strings.Builder
	for _, i := range members {
		b.WriteByte(quotaFlag(tasks[i].Recurs, tasks[i].Bound))
	}
	for _, i := range members {
		if marked {
			fmt.Fprintf(&b, "%16.16s", tasks[i].Mark)
		}
	}
	return b.String()
}

// quotaParts are the parts of a quota by the letters that quota.lua has for them.
var quotaParts = map[string]string{"l": "live", "r": "recurring", "b": "bytes", "s": "submits"}

// quotaRefusal is the refusal of a task of an agent, from what quota.lua says: part, limit, how much is used, and when there is room again.
func quotaRefusal(agent, says string) error {
	fields := strings.Split(says, "|")
	if len(says) == 0 || len(fields) != 3 {
		return call.Wrap(call.VerbSubmit, layout.ErrMalformed)
	}
	e := &store.LimitError{Agent: agent, Quota: quotaParts[says[:1]]}
	var numbers [3]int64
	for i, field := range fields {
		n, err := strconv.ParseInt(strings.TrimPrefix(field, says[:1]), 10, 64)
		if err != nil || e.Quota == "" {
			return call.Wrap(call.VerbSubmit, layout.ErrMalformed)
		}
		numbers[i] = n
	}
	e.Limit, e.Used, e.Until = int(numbers[0]), int(numbers[1]), moment.Millis(numbers[2])
	return e
}
