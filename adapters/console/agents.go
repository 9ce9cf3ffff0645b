package console

// The page of agents: looked for by the beginning of their ids, page by page.

import (
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// agentsPage is a page of agents.
type agentsPage struct {
	Prefix   string
	Agents   []model.AgentStats
	Looked   int  // how many agents were looked at
	Searches bool // for a prefix
	More     string
	Begun    bool // it continues an earlier page
	All      bool // the visitor may see all agents
	Steers   bool
}

// Sizes of a page of agents: of one that shows all it looks at, and of one that shows those with a prefix. Neither looks at more, however many there
// are.
const (
	agentsShown  = 32
	agentsLooked = 500
)

// agents lists agents with live tasks. A visitor who may see some agents only names the one to open.
func (c *console) agents(v *visit) (*page, error) {
	p := agentsPage{Prefix: v.q.Get("prefix"), All: v.may(model.ActionRead, "") == nil, Begun: v.q.Get("cursor") != ""}
	p.Searches = p.Prefix != ""
	if !p.All {
		if p.Searches {
			return &page{to: agentURL(p.Prefix)}, nil
		}
		return &page{name: "agents", title: "Agents", body: p}, nil
	}
	limit := agentsShown
	if p.Searches {
		limit = agentsLooked
	}
	all, next, err := c.scheduler.Agents(v.r.Context(), limit, v.q.Get("cursor"))
	if err != nil {
		return nil, err
	}
	p.Looked, p.Steers = len(all), v.steers("")
	for _, a := range all {
		if strings.HasPrefix(a.Agent, p.Prefix) && len(p.Agents) < agentsLooked {
			p.Agents = append(p.Agents, a)
		}
	}
	if next != "" {
		p.More = Path + "/agents?" + url.Values{"prefix": {p.Prefix}, "cursor": {next}}.Encode()
	}
	return &page{name: "agents", title: "Agents", body: p}, nil
}
