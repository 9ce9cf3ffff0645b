package inspect

// Live tasks of all agents, agent by agent, in pages of bounded cost; among them the registry, which is the recurring ones.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

// Bounds of one page over all agents: how many agents are looked up at once, of how many agents tasks are read, and how many pages of tasks are
// read for them. Where there are many agents and few tasks a page is short, or empty, and has a cursor.
const (
	agentsAtOnce  = 32
	mostAgents    = 128
	mostReads     = 128
	maxPlaceLen   = 2 * maxCursorLen
	placesOfPages = "must be the next_cursor of a page over all agents"
)

// listRoom is what a page may still take.
type listRoom struct {
	bytes int  // of payloads, results and records of runs
	reads int  // pages of the store
	hard  bool // the page ends there even if it has no task yet
}

// spent reports whether a page with so many tasks is to end.
func (r *listRoom) spent(tasks int) bool { return r.reads <= 0 && (tasks > 0 || r.hard) }

// place is where a page over all agents has ended.
type place struct {
	Agents string `json:"a,omitempty"` // the cursor of the agents that it was at
	Agent  string `json:"i,omitempty"` // the one of these that comes next; empty for the first
	Tasks  string `json:"j,omitempty"` // the cursor of its tasks
}

// encode is the place as a cursor.
func (p place) encode() string {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // so that its length is bounded by that of names
	_ = e.Encode(p)        //nolint:errchkjson // three strings
	return base64.RawURLEncoding.EncodeToString(bytes.TrimSpace(text.Bytes()))
}

// parsePlace reads a cursor; the empty one is the beginning.
func parsePlace(cursor string) (place, error) {
	var p place
	if cursor == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return p, check.Invalid("cursor", placesOfPages)
	}
	return p, nil
}

// agentScan is a page over all agents while it is built.
type agentScan struct {
	s     *View
	list  List
	at    place
	room  listRoom
	asked int // agents
	tasks []model.TaskInfo
}

// listAllAgents is a page of live tasks of all agents. An agent that appears or disappears meanwhile may make tasks appear twice, and never hides
// those of others.
func (s *View) listAllAgents(ctx context.Context, l List) ([]model.TaskInfo, string, error) {
	if l.Status == nil {
		l.Status = []store.Status{store.StatusWaiting, store.StatusInProgress}
	}
	at, err := parsePlace(l.Cursor)
	if err != nil {
		return nil, "", err
	}
	w := agentScan{s: s, list: l, at: at, room: listRoom{bytes: store.PageBytes, reads: cmp.Or(l.Reads, mostReads), hard: true}}
	for {
		if l.Reads > 0 { // who bounds the calls of a page bounds these, too
			w.room.reads--
		}
		agents, next, err := s.Agents(ctx, agentsAtOnce, w.at.Agents)
		if err != nil {
			return nil, "", err
		}
		full, err := w.visit(ctx, startingAt(agents, w.at.Agent))
		switch {
		case err != nil:
			return nil, "", err
		case full:
			return w.tasks, w.at.encode(), nil
		case next == "":
			return w.tasks, "", nil
		}
		w.at = place{Agents: next}
	}
}

// visit adds the tasks of agents. It reports whether the page is full before all of them are read: at is then where to continue.
func (w *agentScan) visit(ctx context.Context, agents []model.AgentStats) (bool, error) {
	for i := range agents {
		if agent := agents[i].Agent; agent != w.at.Agent {
			w.at.Agent, w.at.Tasks = agent, ""
		}
		if len(w.tasks) >= w.list.Limit || w.asked >= mostAgents || w.room.bytes < 0 || w.room.reads <= 0 {
			return true, nil
		}
		w.asked++
		l := w.list
		l.Agent, l.Limit, l.Cursor = w.at.Agent, l.Limit-len(w.tasks), w.at.Tasks
		tasks, more, err := w.s.tasks(ctx, &l, &w.room)
		if err != nil {
			return true, err
		}
		w.tasks = append(w.tasks, tasks...)
		if w.at.Tasks = more; more != "" {
			return true, nil
		}
	}
	return false, nil
}

// startingAt are the agents of a page from agent on; all of them if that has disappeared.
func startingAt(agents []model.AgentStats, agent string) []model.AgentStats {
	for i := range agents {
		if agents[i].Agent == agent {
			return agents[i:]
		}
	}
	return agents
}

// ParseLabel reads a label to select by: a name, an equals sign and a value. Fails with an *[store.InvalidError].
func ParseLabel(text string) (name, value string, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok || name == "" {
		return "", "", check.Invalid("label", "must be name=value, not %q", check.Clip(text))
	}
	return name, value, nil
}
