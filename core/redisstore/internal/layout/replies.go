package layout

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Replies of plain commands, which are sent with Do: RESP 3 has maps and pairs where RESP 2 has flat lists.

// FieldsOf is the reply to HGETALL or CONFIG GET; empty if it is invalid.
func FieldsOf(answer *redis.Cmd) map[string]string {
	fields := map[string]string{}
	switch v := answer.Val().(type) {
	// RESP 3, which servers from 6.0 on speak: a map of its own.
	case map[any]any:
		for name, value := range v {
			fields[Text(name)] = Text(value)
		}
	// RESP 2: names and values in turns.
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			fields[Text(v[i])] = Text(v[i+1])
		}
	}
	return fields
}

// scored is a member of a sorted set.
type scored struct {
	Member string
	Score  moment.Millis
}

// ScoresOf is the reply to ZRANGE WITHSCORES of a set whose scores are times; nil if it is invalid.
func ScoresOf(answer *redis.Cmd) []scored {
	// The nil slice of another reply makes an empty result, not a panic.
	list, _ := answer.Val().([]any)
	var out []scored
	for i := 0; i < len(list); i++ {
		// Nested pairs are RESP 3's form; RESP 2 has member and score in turns.
		pair, nested := list[i].([]any)
		if !nested && i+1 < len(list) {
			pair, i = list[i:i+2], i+1
		}
		if len(pair) == 2 {
			out = append(out, scored{Member: Text(pair[0]), Score: score(pair[1])})
		}
	}
	return out
}

// score reads a score: RESP 3 has numbers of floating point, RESP 2 decimal strings.
func score(v any) moment.Millis {
	if f, ok := v.(float64); ok {
		return moment.Millis(f)
	}
	f, err := strconv.ParseFloat(Text(v), 64)
	if err != nil {
		return 0
	}
	return moment.Millis(f)
}

// SendAll sends a pipeline, after which each command has its own reply or error. go-redis sets none if Redis refused the
// password of the connection that was to be made for it.
func SendAll(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			return
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Int is a counter as Redis returns it: a decimal string.
func Int(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64) // a missing counter is zero
	return n
}

// ParseTime is the answer to TIME, seconds and microseconds; zero if it is invalid.
func ParseTime(answer *redis.Cmd) moment.Millis {
	parts, err := answer.StringSlice()
	if err != nil || len(parts) != 2 {
		return 0
	}
	seconds, err1 := strconv.ParseInt(parts[0], 10, 64)
	micros, err2 := strconv.ParseInt(parts[1], 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	// Whole milliseconds, rounded down, as the scripts do it: a look must not be ahead of them.
	return moment.Millis(seconds*1000 + micros/1000)
}
