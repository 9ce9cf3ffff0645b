package redisstore

// Touch: activity of users, joined into script calls as submits are.

import (
	"context"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Touch notes that something happened for the subjects of activity tasks; see [store.Queue]. A single touch joins those of other
// goroutines in one script call.
func (s *Store) Touch(ctx context.Context, touches []store.Touch) ([]store.Touched, error) {
	var outcomes []outcome[submitted]
	if len(touches) == 1 {
		a, err := s.touches.of(touches[0].Agent).do(ctx, &touches[0])
		// The same way as a single submit: see there.
		if err != nil {
			return nil, submitError(err)
		}
		outcomes = []outcome[submitted]{{answer: a}}
	} else {
		outcomes = s.touch(ctx, touches)
	}
	// All touches that could be booked are: a refusal does not undo the
	// others, and the first one is returned.
	out := make([]store.Touched, len(touches))
	var refused error
	for i, o := range outcomes {
		if o.err != nil {
			return nil, o.err
		}
		err := s.refused(touches[i].Agent, touches[i].ID, o.answer.code)
		if o.answer.quota != "" {
			err = quotaRefusal(touches[i].Agent, o.answer.quota)
		}
		if err != nil && refused == nil {
			refused = err
		}
		out[i] = store.Touched{Booked: o.answer.Created, Due: o.answer.Due, Reason: o.answer.reason}
	}
	if refused != nil {
		return nil, refused
	}
	return out, nil
}

// touch books runs of activity tasks.
// Longest is empty for an activity task that throttles, and the script distinguishes the two by it.
func (s *Store) touch(ctx context.Context, touches []store.Touch) []outcome[submitted] {
	const fields = 3
	calls, members := s.byPartition(len(touches), mostPayload,
		func(i int) (string, int) { return touches[i].Agent, len(touches[i].Body) },
		func(partition int, members []int) call.Call {
			args := []any{s.live()}
			for _, i := range members {
				args = append(args, touchArgs(&touches[i])...)
			}
			return call.Call{Script: &s.db.Scripts.Touch, Partition: partition, Args: args}
		})
	return s.place(ctx, calls, members, fields, func(answer []any) (submitted, error) {
		if says, refused := strings.CutPrefix(layout.Text(answer[0]), "!"); refused {
			return submitted{quota: says}, nil
		}
		// Negative codes are submit's; 1 is a run that was booked by this very touch.
		booked := layout.Number(answer[0])
		return submitted{
			code: min(booked, 0), reason: store.Reason(layout.Text(answer[2])),
			Submitted: store.Submitted{Created: booked == 1, Due: moment.Millis(layout.Number(answer[1]))},
		}, nil
	}, nil)
}

// touchArgs are the arguments of touch.lua for one touch.
func touchArgs(t *store.Touch) []any {
	// Debounce moves the run with each touch, at most to this long after the
	// first; a throttle does not move it.
	longest := ""
	if t.Pulse.Debounce {
		longest = strconv.FormatInt(t.Pulse.MaxWait.Milliseconds(), 10)
	}
	bound := ""
	if t.Bound {
		bound = string(quotaFlag(false, true)) + t.Mark
	}
	return []any{
		layout.Encode(t.Agent), t.ID, layout.Record(t.Level, t.ID, t.Kind, "", t.Body), layout.GroupKey(t.Agent, ""), t.Pulse.Delay.Milliseconds(), longest, bound,
	}
}
