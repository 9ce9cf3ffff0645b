package redisstore

import (
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// Replies of plain commands, which are sent with Do: RESP 3 has maps and pairs where RESP 2 has flat lists.

// fieldsOf is the reply to HGETALL or CONFIG GET; empty if it is none.
func fieldsOf(answer *redis.Cmd) map[string]string {
	fields := map[string]string{}
	switch v := answer.Val().(type) {
	case map[any]any:
		for name, value := range v {
			fields[text(name)] = text(value)
		}
	case []any:
		for i := 0; i+1 < len(v); i += 2 {
			fields[text(v[i])] = text(v[i+1])
		}
	}
	return fields
}

// scored is a member of a sorted set.
type scored struct {
	member string
	score  store.Millis
}

// scoresOf is the reply to ZRANGE WITHSCORES of a set whose scores are times; nil if it is none.
func scoresOf(answer *redis.Cmd) []scored {
	list, _ := answer.Val().([]any)
	var out []scored
	for i := 0; i < len(list); i++ {
		pair, nested := list[i].([]any)
		if !nested && i+1 < len(list) {
			pair, i = list[i:i+2], i+1
		}
		if len(pair) == 2 {
			out = append(out, scored{member: text(pair[0]), score: score(pair[1])})
		}
	}
	return out
}

func score(v any) store.Millis {
	if f, ok := v.(float64); ok {
		return store.Millis(f)
	}
	f, err := strconv.ParseFloat(text(v), 64)
	if err != nil {
		return 0
	}
	return store.Millis(f)
}
