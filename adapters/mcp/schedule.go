package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// Scheduling, and trying out when.

// schedule submits a task. The fields are those of a task, and are read as such.
func (m *Server) schedule(ctx context.Context, agent string, in *scheduleArgs) (string, error) {
	if err := m.known(in.Kind); err != nil {
		return "", err
	}
	zone, err := m.zoneOf(ctx, agent, &in.planArgs)
	if err != nil {
		return "", err
	}
	t, err := in.task(agent)
	if err != nil {
		return "", err
	}
	placed, err := m.scheduler.Submit(ctx, t)
	if err != nil {
		return "", err
	}
	return m.placed(ctx, &t, in.planArgs, &placed[0], zone), nil
}

// task is the task of the arguments, by the one reader of tasks.
func (in *scheduleArgs) task(agent string) (core.NewTask, error) {
	fields := struct {
		Agent      string           `json:"agent_id"`
		ID         string           `json:"id,omitempty"`
		Kind       string           `json:"kind"`
		Payload    json.RawMessage  `json:"payload,omitempty"`
		OnConflict model.OnConflict `json:"on_conflict,omitempty"`
		planArgs
	}{Agent: agent, ID: in.ID, Kind: in.Kind, Payload: some(in.Payload), planArgs: in.planArgs}
	if in.Replace {
		fields.OnConflict = core.OnConflictReplace
	}
	var t core.NewTask
	data, err := json.Marshal(fields)
	if err == nil {
		err = json.Unmarshal(data, &t)
	}
	return t, err
}

// some is a value, or nothing: an empty one is not JSON.
func some(value json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(value)) == 0 {
		return nil
	}
	return value
}

// mostKinds is how many kinds an error names.
const mostKinds = 20

// known refuses a kind that nothing runs: its task would wait unseen.
func (m *Server) known(kind string) error {
	if _, known := m.config.Kinds[kind]; m.config.Kinds == nil || known {
		return nil
	}
	all := slices.Sorted(maps.Keys(m.config.Kinds))
	if len(all) > mostKinds {
		all = append(all[:mostKinds], "...")
	}
	return invalid("kind", "%q is not known: use one of %s", kind, strings.Join(all, ", "))
}

// placed says what was stored. One that is new is as it was given, but for when the store has it due; any other is read.
func (m *Server) placed(ctx context.Context, t *core.NewTask, in planArgs, p *core.Submitted, zone string) string {
	what := "is scheduled"
	switch {
	case p.Differs:
		what = "existed already, and is unchanged: what you gave differs from it; give replace to change it"
	case p.Replaced:
		what = "was changed"
	case !p.Created:
		what = "existed already, just so"
	}
	text := fmt.Sprintf("Task %q %s", p.ID, what)
	if p.Created && in == (planArgs{Zone: in.Zone}) {
		return text + ", and is due now."
	}
	var info core.TaskInfo
	var err error
	if p.Created && !p.Due.IsZero() {
		info, err = m.scheduler.Plan(ctx, t)
		info.NextRun = p.Due
	} else {
		info, err = m.scheduler.Task(ctx, p.Agent, p.ID)
	}
	if err != nil {
		return text + "." // it is stored all the same
	}
	return text + after(": ", readBack(&info, zone, times)) + "."
}

// after is a text behind a sign; nothing if it is empty.
func after(sign, text string) string {
	if text == "" {
		return ""
	}
	return sign + text
}

// times is how many of the next times an answer about one task has.
const times = 5

// readBack is the schedule of a task in words, and so many of its next times, in the zone of its user.
func readBack(info *core.TaskInfo, zone string, most int) string {
	name := cmp.Or(strings.TrimSuffix(info.Zone, core.ZoneOfAgent), zone, "UTC")
	in, err := time.LoadLocation(name)
	if err != nil {
		in = time.UTC
	}
	return inspect.ReadBack(info, zone, in, most)
}

// zoneOf is the zone in which answers are: the one that is given, else that of the agent's profile, else the scheduler's. An expression without a zone
// is refused: models write UTC, and mean the user's.
func (m *Server) zoneOf(ctx context.Context, agent string, plan *planArgs) (string, error) {
	if plan.Zone != "" && plan.Zone != core.ZoneOfAgent {
		return plan.Zone, nil
	}
	profile, err := m.profileZone(ctx, agent)
	if err != nil {
		return "", err
	}
	if plan.Cron != "" && plan.Zone == "" {
		return "", invalid("zone", "is required with cron: use the user's, such as %s", suggested(profile, m.config.Zone))
	}
	return cmp.Or(profile, m.config.Zone), nil
}

// profileZone is the zone of the agent's profile; empty if it has none.
func (m *Server) profileZone(ctx context.Context, agent string) (string, error) {
	p, err := m.scheduler.Profile(ctx, agent)
	if core.CodeOf(err) == core.CodeNotFound {
		return "", nil
	}
	return p.Zone, err
}

// suggested are zones for a model to choose from.
func suggested(profile, ofAll string) string {
	switch {
	case profile != "":
		return fmt.Sprintf("%s, which this agent's profile has", profile)
	case ofAll != "":
		return fmt.Sprintf("%s, which this server has", ofAll)
	default:
		return "Europe/Berlin or America/New_York"
	}
}

// preview says how a time is understood, as it would be if a task were submitted now.
func (m *Server) preview(ctx context.Context, agent string, in *planArgs) (string, error) {
	zone, err := m.zoneOf(ctx, agent, in)
	if err != nil {
		return "", err
	}
	t, err := (&scheduleArgs{Kind: "preview", planArgs: *in}).task(agent)
	if err != nil {
		return "", err
	}
	info, err := m.scheduler.Plan(ctx, &t)
	if err != nil {
		return "", err
	}
	text := readBack(&info, zone, times)
	if *in == (planArgs{Zone: in.Zone}) {
		text = "At once, as no time is given"
	}
	if text == "" {
		return "", invalid("when", "is never due")
	}
	return text + ".", nil
}

// by is who gives an order. A caller with a credential is known by its name.
func by(ctx context.Context, reason string) core.Order {
	return model.OrderOf(ctx, core.Order{By: "mcp:" + agentOf(ctx), Reason: reason})
}
