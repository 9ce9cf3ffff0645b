package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// agents is a page of the agents with live tasks.
func (s *Store) agents(ctx context.Context, q store.Query) (store.Page, error) {
	var page store.Page
	err := s.pages(ctx, &s.scripts.agents, q, &page, func(_ int, fields []any) error {
		agent, err := parseAgent(fields)
		page.Agents = append(page.Agents, agent)
		return err
	})
	return page, err
}

// pauses is a page of the holds in force. Those that are about agents of all partitions stand in each: the first one's count.
func (s *Store) pauses(ctx context.Context, q store.Query) (store.Page, error) {
	var page store.Page
	err := s.pages(ctx, &s.scripts.pauses, q, &page, func(partition int, fields []any) error {
		held, err := parseHeld(fields)
		if held.Scope.Agent != "" || partition == 0 {
			page.Holds = append(page.Holds, held)
		}
		return err
	})
	return page, err
}

// pages asks a script for what it has, partition by partition, until there is enough for a page. add is given the fields of
// each thing, and adds it to the page.
func (s *Store) pages(ctx context.Context, script *script, q store.Query, page *store.Page, add func(partition int, fields []any) error) error {
	at, cursor, ok := parseCursor(q.After, len(s.parts))
	if !ok {
		return errCursor
	}
	for at < len(s.parts) && len(page.Agents)+len(page.Holds) < max(q.Limit, 1) {
		things, err := s.page(ctx, call{script: script, partition: at, args: []any{cursor, max(q.Limit, 1)}}, page, &cursor)
		if err != nil {
			return err
		}
		for _, fields := range things {
			if err := add(at, fields); err != nil {
				return wrap("read", err)
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

// page is one step of pages: the fields of each thing, and where to go on.
func (s *Store) page(ctx context.Context, c call, page *store.Page, cursor *string) ([][]any, error) {
	replies, err := s.eval(ctx, "read", []call{c})
	if err != nil {
		return nil, err
	}
	reply, fields := replies[0], pageFields[c.script.name]
	if len(reply) < 2 || (len(reply)-2)%fields != 0 {
		return nil, wrap("read", errMalformed)
	}
	page.Now, *cursor = store.Millis(number(reply[0])), text(reply[1])
	return slices.Collect(slices.Chunk(reply[2:], fields)), nil
}

// pageFields is how many fields the scripts that answer with pages have for each thing.
var pageFields = map[string]int{"agents": 4, "pauses": 2}

func parseAgent(fields []any) (store.AgentStats, error) {
	name, err := decode(text(fields[0]))
	if err != nil {
		return store.AgentStats{}, err
	}
	due, err := millis(fields[2])
	return store.AgentStats{Agent: name, Live: number(fields[1]), Due: due, Held: number(fields[3]) == 1}, err
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
