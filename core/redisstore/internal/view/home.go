package view

// Home: what the home of a bucket that spans partitions knows of it, to explain why a task waits.

import (
	"context"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/bounds"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
)

// linesAtHome puts the homes' state into the lines of a reply of read.lua: how much of a bucket is in use, and when there is room, is known there
// alone. A home that is away leaves them unchanged.
func (s *View) linesAtHome(ctx context.Context, reply []any) {
	if len(s.db.Parts) == 1 {
		return
	}
	for i := readFields; i < len(reply); i += readFields {
		line, _ := reply[i].([]any)
		if len(line) != len(bounds.LineFields{}) {
			continue
		}
		bucket := layout.Text(line[0])
		if !strings.HasSuffix(layout.Text(line[1]), bounds.Spans) && !spanningBudget(bucket, layout.Text(line[1])) {
			continue
		}
		pipe, p := s.db.Client.Pipeline(), s.db.Parts[s.db.PartitionOf(bucket)]
		for _, what := range []string{"HGET flight", "HGET learned", "HGET spent", "ZSCORE rates", "ZSCORE periods"} {
			command, key, _ := strings.Cut(what, " ")
			pipe.Do(ctx, command, p.Key(key), bounds.AtHome+bucket)
		}
		cmds, _ := pipe.Exec(ctx)
		var v [5]any
		for i, cmd := range cmds {
			if c, ok := cmd.(*redis.Cmd); ok {
				v[i] = c.Val()
			}
		}
		line[2], line[4], line[5], line[6], line[7] = v[0], scoreText(v[3]), v[2], scoreText(v[4]), v[1]
	}
}

// readFields is how many fields read.lua has for each task, after the time.
const readFields = 13

// spanningBudget recognises a budget that spans partitions by its letter.
func spanningBudget(bucket, said string) bool {
	_, then, _ := strings.Cut(said, "|")
	return bounds.IsBudget(bucket) && then != "" && then[0] >= 'A' && then[0] <= 'Z'
}

// scoreText is a score as scripts write it, from either protocol; empty for none.
func scoreText(score any) string {
	if n, ok := score.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return layout.Text(score)
}
