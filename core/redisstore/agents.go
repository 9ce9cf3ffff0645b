package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// agents is a page of the agents with live tasks.
func (s *Store) agents(ctx context.Context, q core.Query) (core.Page, error) {
	var page core.Page
	err := s.pages(ctx, &s.scripts.agents, q, &page, func(_ int, fields []any) (bool, error) {
		agent, err := parseAgent(fields)
		page.Agents = append(page.Agents, agent)
		return true, err
	})
	return page, err
}

// pauses is a page of the holds in force. Those that are about agents of all partitions stand in each: the first one's count.
func (s *Store) pauses(ctx context.Context, q core.Query) (core.Page, error) {
	var page core.Page
	err := s.pages(ctx, &s.scripts.pauses, q, &page, func(partition int, fields []any) (bool, error) {
		held, err := parseHeld(fields)
		if err != nil || held.Scope.Agent == "" && partition > 0 {
			return false, err
		}
		page.Holds = append(page.Holds, held)
		return true, nil
	})
	return page, err
}

// pages asks a script for what it has, partition by partition, until there is enough for a page. add is given the fields of
// each thing, and says whether it counts.
func (s *Store) pages(ctx context.Context, script *script, q core.Query, page *core.Page, add func(partition int, fields []any) (bool, error)) error {
	at, cursor, ok := parseCursor(q.After, len(s.parts))
	if !ok {
		return &core.InvalidError{Field: "cursor", Reason: "is not one that a page ended with"}
	}
	for got := 0; at < len(s.parts) && got < max(q.Limit, 1); {
		replies, err := s.eval(ctx, "read", []call{{script: script, partition: at, args: []any{cursor, max(q.Limit, 1)}}})
		if err != nil {
			return err
		}
		reply := replies[0]
		fields := pageFields[script.name]
		if len(reply)%fields != 2%fields {
			return wrap("read", errMalformed)
		}
		page.Now, cursor = core.Millis(number(reply[0])), text(reply[1])
		for i := 2; i < len(reply); i += fields {
			counts, err := add(at, reply[i:i+fields])
			if err != nil {
				return wrap("read", err)
			}
			if counts {
				got++
			}
		}
		if cursor == "0" {
			at++
		}
	}
	if at < len(s.parts) {
		page.Next = fmt.Sprintf("%d.%s", at, cursor)
	}
	return nil
}

// pageFields is how many fields the scripts that answer with pages have for each thing.
var pageFields = map[string]int{"agents": 4, "pauses": 2}

func parseAgent(fields []any) (core.AgentStats, error) {
	name, err := decode(text(fields[0]))
	if err != nil {
		return core.AgentStats{}, err
	}
	due, err := millis(fields[2])
	return core.AgentStats{Agent: name, Live: number(fields[1]), Due: due, Held: number(fields[3]) == 1}, err
}

// parseCursor reads where a page of agents ended: a partition, and a cursor in it.
func parseCursor(s string, partitions int) (int, string, bool) {
	if s == "" {
		return 0, "0", true
	}
	part, cursor, _ := strings.Cut(s, ".")
	at, err1 := strconv.Atoi(part)
	_, err2 := strconv.ParseUint(cursor, 10, 64)
	return at, cursor, err1 == nil && err2 == nil && at >= 0 && at < partitions
}
