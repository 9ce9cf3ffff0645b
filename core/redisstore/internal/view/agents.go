package view

// A page of the agents of all partitions: the pages of many partitions are joined into one.

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/script"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Agents returns a page of the agents with live tasks; see [store.Reader].
func (s *View) Agents(ctx context.Context, q store.PageOf) (store.AgentPage, error) {
	var page store.AgentPage
	var err error
	page.Next, err = s.pages(ctx, &s.db.Scripts.Agents, q, func(_ int, fields []any) (int, error) {
		agent, err := parseAgent(fields)
		page.Agents = append(page.Agents, agent)
		return len(page.Agents), err
	})
	return page, err
}

// Holds returns a page of the holds in force; see [store.Reader]. A hold on a kind, on a limit key or
// on everything is stored in every partition, as claims read their own partition alone: only the copy
// in the first one is returned, so that such a hold is not listed once for each partition.
func (s *View) Holds(ctx context.Context, q store.PageOf) (store.HoldPage, error) {
	var page store.HoldPage
	var err error
	page.Next, err = s.pages(ctx, &s.db.Scripts.Pauses, q, func(partition int, fields []any) (int, error) {
		held, err := parseHeld(fields)
		if held.Target.Agent != "" || partition == 0 {
			page.Holds = append(page.Holds, held)
		}
		return len(page.Holds), err
	})
	return page, err
}

// mostPaged is how many things one step of a page looks at, about: a page of thousands is several steps.
const mostPaged = 150

// pages asks a script for its entries, partition by partition, until there is enough for a page, and returns where the next one
// begins. add gets the fields of each entry, and returns how many the page has then.
// A cursor is "PARTITION.SCAN": the partition that the page ended in and the cursor of Redis in it.
// It outlives the process that returned it, so that any process can serve the next page.
func (s *View) pages(
	ctx context.Context, of *script.Script, q store.PageOf, add func(partition int, fields []any) (int, error),
) (string, error) {
	at, cursor, ok := parseCursor(q.After, len(s.db.Parts))
	if !ok {
		return "", ErrCursor
	}
	for n := 0; at < len(s.db.Parts) && n < max(q.Limit, 1); {
		things, next, err := s.pageOf(ctx, call.Call{Script: of, Partition: at, Args: []any{cursor, min(max(q.Limit-n, 1), mostPaged)}})
		if err != nil {
			return "", err
		}
		for _, fields := range things {
			if n, err = add(at, fields); err != nil {
				return "", call.Wrap("read", err)
			}
		}
		// SCAN returns "0" at its end: this partition has no more, and the next
		// one starts at its own beginning.
		if cursor = next; cursor == "0" {
			at++
		}
	}
	if at == len(s.db.Parts) {
		return "", nil
	}
	return fmt.Sprintf("%d.%s", at, cursor), nil
}

// pageOf is one step of pages: the fields of each thing, and where to continue.
func (s *View) pageOf(ctx context.Context, c call.Call) ([][]any, string, error) {
	replies, err := s.db.Run(ctx, "read", []call.Call{c})
	if err != nil {
		return nil, "", err
	}
	reply, fields := replies[0], pageFields[c.Script.Name]
	if len(reply) < 2 || (len(reply)-2)%fields != 0 {
		return nil, "", call.Wrap("read", layout.ErrMalformed)
	}
	return slices.Collect(slices.Chunk(reply[2:], fields)), layout.Text(reply[1]), nil
}

// pageFields is how many fields the scripts that answer with pages have for each thing.
var pageFields = map[string]int{"agents": 4, "pauses": 2}

// parseAgent reads one agent of a page: its encoded id, its number of live tasks, its
// earliest due time, and whether a hold is on it.
func parseAgent(fields []any) (store.AgentStats, error) {
	name, err := layout.Decode(layout.Text(fields[0]))
	if err != nil {
		return store.AgentStats{}, err
	}
	due, err := layout.Millis(fields[2])
	return store.AgentStats{Agent: name, Live: layout.Number(fields[1]), Due: due, Held: layout.Number(fields[3]) == 1}, err
}

// parseCursor reads where a page of agents ended: a partition, and a cursor in it.
func parseCursor(s string, partitions int) (int, string, bool) {
	if s == "" {
		// No cursor: the first page starts at the beginning of the first partition.
		return 0, "0", true
	}
	part, cursor, _ := strings.Cut(s, ".")
	// A cursor comes from a client, so each half is checked before Redis sees it: a number that Redis
	// cannot parse would be an error of the server, which callers take for an outage.
	at, err1 := strconv.Atoi(part)
	_, err2 := strconv.ParseUint(cursor, 10, 64)
	return at, cursor, err1 == nil && err2 == nil && at >= 0 && at < partitions
}
