package memosstream

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Mending: records of MemOS's tracker that say less than the store does, as a process died, or Redis was away, before it had written what became of
// an item.

// Bounds of one search: it continues where it stopped, five minutes later.
const (
	mendCount = 500
	mostMends = 40 // pages
)

// mending is how far a search has come.
type mending struct {
	users  []string // that are left
	cursor uint64   // in the records of the first of them
}

// mend looks at a part of the records of the users of all streams, or at all of them if these are few.
func (i *Intake) mend(ctx context.Context) error {
	if len(i.mending.users) == 0 {
		i.mending.users = i.users()
	}
	for range mostMends {
		if len(i.mending.users) == 0 {
			return nil
		}
		if err := i.mendPage(ctx, i.mending.users[0]); err != nil {
			return err
		}
	}
	return nil
}

// users are those of all streams, once each.
func (i *Intake) users() []string {
	users := map[string]bool{}
	for name := range i.streams {
		if user := i.userOf(name); user != "" {
			users[user] = true
		}
	}
	return slices.Collect(maps.Keys(users))
}

// mendPage looks at a page of the records of a user, who is done with after the last one.
func (i *Intake) mendPage(ctx context.Context, user string) error {
	fields, next, err := i.client.HScan(ctx, metaKey(user), i.mending.cursor, "", mendCount).Result()
	switch {
	case err != nil && redis.HasErrorPrefix(err, "WRONGTYPE"): // none of MemOS's: it must not delay the messages of other streams
		i.mirror.failed(ctx, err)
		i.mending.users, i.mending.cursor = i.mending.users[1:], 0
		return nil
	case err != nil:
		return err
	}
	for n := 0; n+1 < len(fields); n += 2 {
		if err := i.mendOne(ctx, user, fields[n], fields[n+1]); err != nil {
			return err
		}
	}
	if i.mending.cursor = next; next == 0 {
		i.mending.users = i.mending.users[1:]
	}
	return nil
}

// mendOne writes how an item has ended, if its record does not say that it has.
func (i *Intake) mendOne(ctx context.Context, user, item, text string) error {
	if !unfinished(text) {
		return nil
	}
	task, err := i.scheduler.Task(ctx, user, item)
	if code := core.CodeOf(err); code == core.CodeNotFound || code == core.CodeInvalid {
		err = nil // it is no task yet, or not ours: its status is empty
	}
	switch task.Status {
	case core.StatusCompleted, core.StatusFailed, core.StatusCancelled:
		i.mirror.write(ctx, &core.Event{Type: model.EventFinish, Agent: user, ID: item, Status: task.Status, Time: task.Finished, Error: task.LastError})
	default: // not ended: the process that runs it writes its end
	}
	return err
}

// unfinished reports whether a record says that its item has not ended. What is not MemOS's says nothing.
func unfinished(text string) bool {
	var record struct {
		Status core.Status `json:"status"`
	}
	err := json.Unmarshal([]byte(text), &record)
	return err == nil && (record.Status == core.StatusWaiting || record.Status == core.StatusInProgress)
}

// userOf is the user in the name of a stream, as MemOS reads it: all but the prefix, the cube and the label.
func (i *Intake) userOf(name string) string {
	rest := strings.TrimPrefix(name, i.config.Prefix+":")
	for range 2 {
		at := strings.LastIndexByte(rest, ':')
		if at < 0 {
			return ""
		}
		rest = rest[:at]
	}
	return rest
}
