package operate

// Forgetting an agent: its tasks, their history, its groups, its pauses and its profile.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/internal/base"
	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// forgetPage is how many tasks are deleted in one step.
const forgetPage = 200

// Forgotten counts what was, or would be, deleted of an agent.
type Forgotten struct {
	Live     int  `json:"live"`     // tasks that wait or run
	Finished int  `json:"finished"` // records of those that have ended
	Profile  bool `json:"profile"`
}

// Forget deletes all of an agent: its tasks and their history, its groups, the pauses of it and of its tasks, and its profile. Runs of it lose
// their leases: their contexts are cancelled with the next heartbeat, and what they return is refused. It works page by page and never blocks
// others. If it fails in between, or its process dies, the same call again completes it; an agent of which nothing is known is no
// error. Tasks that are submitted while it works stay. progress, if not nil, is called after each page. What tenants share, such as the
// statistics of kinds with their last failures, stays; and so do limits and budgets that its caller may not change.
func (s *Desk) Forget(ctx context.Context, agent string, progress func(soFar Forgotten)) (Forgotten, error) {
	return s.forget(ctx, agent, false, progress)
}

// CountForget counts what Forget would delete, and deletes nothing.
func (s *Desk) CountForget(ctx context.Context, agent string) (Forgotten, error) {
	return s.forget(ctx, agent, true, nil)
}

func (s *Desk) forget(ctx context.Context, agent string, dry bool, progress func(soFar Forgotten)) (Forgotten, error) {
	var done Forgotten
	if err := check.ValidID("agent_id", agent); err != nil {
		return done, err
	}
	var begun moment.Millis
	for after := ""; ; {
		page, err := s.base.Store.List(ctx, store.List{Agent: agent, After: after, Limit: forgetPage})
		if err != nil {
			return done, err
		}
		if begun == 0 {
			begun = page.Now
		}
		n := 0
		if !dry {
			if n, err = s.forgetTasks(ctx, agent, begun, page.Tasks); err != nil {
				return done, err
			}
		}
		done.count(page.Tasks, begun)
		if progress != nil {
			progress(done)
		}
		switch {
		case n > 0: // the task at which the next page begins may be deleted by now
			after = ""
		case page.Next == "":
			err := s.forgetRest(ctx, agent, dry, &done)
			return done, err
		default:
			after = page.Next
		}
	}
}

// count adds a page of tasks, except those that were submitted later.
func (f *Forgotten) count(tasks []store.Stored, begun moment.Millis) {
	for i := range tasks {
		switch t := &tasks[i]; {
		case submittedAt(t) > begun:
		case t.Status.Finished():
			f.Finished++
		default:
			f.Live++
		}
	}
}

// submittedAt is when a task was submitted; zero if that is not known any more.
func submittedAt(t *store.Stored) moment.Millis {
	if t.Status.Finished() {
		rec, _ := record.DecodeFinished(t.Record)
		return rec.Submitted
	}
	return t.Submitted
}

// forgetTasks deletes the tasks of a page that were submitted before a time, and the counts of their groups. It returns how many.
func (s *Desk) forgetTasks(ctx context.Context, agent string, begun moment.Millis, tasks []store.Stored) (int, error) {
	var deletions []store.Deletion
	var gone []*store.Stored
	r := store.Remains{Agent: agent}
	seen := map[string]bool{}
	for i := range tasks {
		t := &tasks[i]
		if submittedAt(t) > begun {
			continue
		}
		group := groupOf(t)
		gone = append(gone, t)
		deletions = append(deletions, store.Deletion{Agent: agent, ID: t.ID, Group: group})
		if group != "" && !seen[group] {
			seen[group] = true
			r.Groups = append(r.Groups, group)
		}
	}
	if len(deletions) == 0 {
		return 0, nil
	}
	effects, err := s.base.Store.Delete(ctx, deletions)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range effects {
		if effects[i].Code == store.EffectDone {
			n++
		}
	}
	disarm(ctx, s.base, gone...)
	if len(r.Groups) > 0 {
		_, err = s.base.Store.Forget(ctx, r)
	}
	return n, err
}

// groupOf is the group of a task, live or finished; empty if it has none, or what is stored cannot be read.
func groupOf(t *store.Stored) string {
	if t.Status.Finished() {
		rec, _ := record.DecodeFinished(t.Record)
		return rec.Group
	}
	b, _ := codec.DecodeBody(t.Body)
	return b.Group
}

// forgetProfile deletes a profile, except what its caller may not change, unless the profile has changed by now.
func (s *Desk) forgetProfile(ctx context.Context, agent string, was []byte) (gone bool, err error) {
	old, _ := record.DecodeProfile(was) // one that cannot be read is deleted
	stays := &record.Profile{Deleted: true, Revision: old.Revision + 1, Zone: old.Zone}
	if err := s.withBounds(ctx, stays, &old); err != nil {
		return false, err
	}
	if stays.Deleted {
		stays = nil
	}
	effects, err := s.base.Store.Profile(ctx, []store.ProfileChange{s.base.ProfileChange(agent, was, stays)})
	return err == nil && effects[0].Code == store.EffectDone, err
}

// forgetRest deletes what an agent has besides tasks.
func (s *Desk) forgetRest(ctx context.Context, agent string, dry bool, done *Forgotten) error {
	for range base.MostTries {
		was, err := s.base.Store.ProfileOf(ctx, agent)
		if err != nil {
			return err
		}
		if done.Profile = done.Profile || len(was) > 0; dry {
			return nil
		}
		if gone, err := s.forgetProfile(ctx, agent, was); err != nil {
			return err
		} else if gone {
			break
		}
	}
	if _, err := s.base.Store.Unhold(ctx, []store.Target{{Agent: agent}}); err != nil {
		return err
	}
	for r := (store.Remains{Agent: agent}); ; {
		next, err := s.base.Store.Forget(ctx, r)
		if err != nil || next == "" {
			return err
		}
		r.Cursor = next
	}
}
