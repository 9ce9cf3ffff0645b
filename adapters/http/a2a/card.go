package a2a

// The card of an agent: where and how clients reach it.

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
)

// cardPath is where the protocol has cards, below the address of an agent.
const cardPath = ".well-known/agent-card.json"

// agentCard is a card that clients of both versions read: 1.0 looks at supportedInterfaces, and 0.3 at the fields after it.
type agentCard struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Version     string `json:"version"`

	Interfaces []agentInterface `json:"supportedInterfaces"`

	Protocol  version `json:"protocolVersion"`
	URL       string  `json:"url"`
	Transport string  `json:"preferredTransport"`

	Capabilities capabilities              `json:"capabilities"`
	Schemes      map[string]securityScheme `json:"securitySchemes,omitempty"`
	Security     []map[string][]string     `json:"security,omitempty"`
	Requirements []requirement             `json:"securityRequirements,omitempty"`
	Input        []string                  `json:"defaultInputModes"`
	Output       []string                  `json:"defaultOutputModes"`
	Skills       []skill                   `json:"skills"`
}

// agentInterface is one way to reach an agent.
type agentInterface struct {
	URL     string  `json:"url"`
	Binding string  `json:"protocolBinding"`
	Version version `json:"protocolVersion"`
}

// capabilities are what the protocol leaves to an agent.
type capabilities struct {
	Streaming bool `json:"streaming"`
	Push      bool `json:"pushNotifications"`
}

// securityScheme is a bearer token: in 0.3 by its type, and in 1.0 by the name of a field.
type securityScheme struct {
	Type   string     `json:"type"`
	Scheme string     `json:"scheme"`
	HTTP   httpScheme `json:"httpAuthSecurityScheme"`
}

// httpScheme is a scheme of the header Authorization.
type httpScheme struct {
	Scheme string `json:"scheme"`
}

// requirement is what a call needs, in 1.0.
type requirement struct {
	Schemes map[string]scopes `json:"schemes"`
}

// scopes are those of a scheme; a bearer token has none.
type scopes struct {
	List []string `json:"list"`
}

// skill is what an agent can do.
type skill struct {
	ID          string   `json:"id"`
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Tags        []string `json:"tags"`
}

// longestAgent is how long the id of an agent may be, in bytes.
const longestAgent = 256

// card answers with the card of an agent. It asks no store: each id that an agent may have has a card, so that a card says nothing of which agents exist.
func (a *api) card(r *http.Request) (int, any, error) {
	agent := r.PathValue("agent")
	if len(agent) > longestAgent || !utf8.ValidString(agent) || strings.ContainsFunc(agent, unicode.IsControl) {
		return 0, nil, problem.New(problem.CodeNoRoute, "there is no such agent")
	}
	at := a.base(r) + "/a2a/" + url.PathEscape(agent)
	about := a.door.Description
	if about == "" {
		about = fmt.Sprintf("Takes work at any time, and does each message as a task of the kind %s.", a.door.Kind)
	}
	c := agentCard{
		Name: agent, Description: about, Version: "1",
		Interfaces: []agentInterface{{at, "JSONRPC", v1}, {at, "JSONRPC", v03}},
		Protocol:   "0.3.0", URL: at, Transport: "JSONRPC", Capabilities: capabilities{Push: a.door.Push},
		Input: []string{"text/plain", "application/json"}, Output: []string{"text/plain", "application/json"},
		Skills: []skill{{ID: a.door.Kind, Name: a.door.Kind, Description: about, Tags: []string{"duly"}}},
	}
	if a.door.Secured {
		const name = "bearer"
		c.Schemes = map[string]securityScheme{name: {"http", "bearer", httpScheme{"Bearer"}}}
		c.Security = []map[string][]string{{name: {}}}
		c.Requirements = []requirement{{map[string]scopes{name: {[]string{}}}}}
	}
	return http.StatusOK, c, nil
}

// base is where the client reaches the server. The host of a request is believed, as only its sender gets the answer.
func (a *api) base(r *http.Request) string {
	if a.door.URL != "" {
		return strings.TrimSuffix(a.door.URL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
