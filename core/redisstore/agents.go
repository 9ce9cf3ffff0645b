package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core"
)

// agents is a page of the agents with live tasks, partition by partition.
func (s *Store) agents(ctx context.Context, q core.Query) (core.Page, error) {
	const fields = 4
	var page core.Page
	at, cursor, ok := parseCursor(q.After, len(s.parts))
	if !ok {
		return page, &core.InvalidError{Field: "cursor", Reason: "is not one that a page ended with"}
	}
	for at < len(s.parts) && len(page.Agents) < max(q.Limit, 1) {
		replies, err := s.eval(ctx, "read", []call{{script: &s.scripts.agents, partition: at, args: []any{cursor, max(q.Limit, 1)}}})
		if err != nil {
			return page, err
		}
		reply := replies[0]
		if len(reply)%fields != 2 {
			return page, wrap("read", errMalformed)
		}
		page.Now, cursor = core.Millis(number(reply[0])), text(reply[1])
		for i := 2; i < len(reply); i += fields {
			agent, err := parseAgent(reply[i : i+fields])
			if err != nil {
				return page, wrap("read", err)
			}
			page.Agents = append(page.Agents, agent)
		}
		if cursor == "0" {
			at++
		}
	}
	if at < len(s.parts) {
		page.Next = fmt.Sprintf("%d.%s", at, cursor)
	}
	return page, nil
}

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
