package a2a

// JSON-RPC: how a call is read, and how it is refused.

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/adapters/internal/problem"
	"github.com/seed-6f6f2c11/duly/adapters/internal/requestbody"
	"github.com/seed-6f6f2c11/duly/core"
)

// jsonrpc is the version of JSON-RPC.
const jsonrpc = "2.0"

// version is one of the protocol.
type version string

// The versions that are answered.
const (
	v1  version = "1.0"
	v03 version = "0.3"
)

// versionHeader is where a client says which version it speaks. Without it that is 0.3, as clients of that say nothing.
const versionHeader = "A2A-Version"

// The codes of errors: those of JSON-RPC, then those of the protocol. Its own are for what it has no code for.
const (
	codeParse       = -32700
	codeRequest     = -32600
	codeMethod      = -32601
	codeParams      = -32602
	codeInternal    = -32603
	codeRefused     = -32000 // the rights of the caller, or a bound
	codeNoTask      = -32001
	codeNoCancel    = -32002
	codeNoPush      = -32003
	codeUnsupported = -32004
	codeNoCard      = -32007
	codeVersion     = -32009
)

// reasons are the names of the protocol's errors, which clients of 1.0 look for beside the code.
var reasons = map[int]string{
	codeNoTask: "TASK_NOT_FOUND", codeNoCancel: "TASK_NOT_CANCELABLE", codeNoPush: "PUSH_NOTIFICATION_NOT_SUPPORTED",
	codeUnsupported: "UNSUPPORTED_OPERATION", codeNoCard: "EXTENDED_AGENT_CARD_NOT_CONFIGURED", codeVersion: "VERSION_NOT_SUPPORTED",
}

// response is the answer to a call. Result is null where a method has none.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result"`
	Error   *rpcError       `json:"error,omitempty"`
}

// MarshalJSON leaves the result out of the answer to a call that failed.
func (r response) MarshalJSON() ([]byte, error) {
	if r.Error == nil {
		type whole response
		return json.Marshal(whole(r))
	}
	return json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *rpcError       `json:"error"`
	}{r.Version, r.ID, r.Error})
}

// rpcError is why a call failed.
type rpcError struct {
	Code    int         `json:"code"`
	Message string      `json:"message"`
	Data    []errorInfo `json:"data,omitempty"`
}

// errorInfo names an error of the protocol, as google.rpc.ErrorInfo does.
type errorInfo struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
}

// Error is the message.
func (e *rpcError) Error() string { return e.Message }

// refuse is an error with a code.
func refuse(code int, why string) *rpcError {
	e := &rpcError{Code: code, Message: why}
	if reason := reasons[code]; reason != "" {
		e.Data = []errorInfo{{"type.googleapis.com/google.rpc.ErrorInfo", reason, "a2a-protocol.org"}}
	}
	return e
}

// theirs are the fields of the protocol by those of the task that they become.
var theirs = map[string]string{
	"session_id": "message.contextId", "payload": "message", "info": "metadata", "callback": "the url for push notifications", "agent_id": "the agent in the path",
}

// failureOf is how an error is answered. Errors of the protocol come with the status 200, as its clients expect; what a proxy or a client that knows
// nothing of the protocol acts on, such as a store that is away, has the status that it has elsewhere.
func failureOf(err error) (status int, failed *rpcError) {
	if own, is := errors.AsType[*rpcError](err); is {
		return http.StatusOK, own
	}
	if inv, is := errors.AsType[*core.InvalidError](err); is {
		field := strings.TrimPrefix(inv.Field, "tasks[0].")
		if name := theirs[field]; name != "" {
			field = name
		}
		return http.StatusOK, refuse(codeParams, field+" "+inv.Reason)
	}
	p := problem.Of(err)
	switch {
	case p.Code == core.CodeNotFound:
		return http.StatusOK, errNoTask
	case p.Code == problem.CodeMediaType || p.Code == problem.CodeTooLarge || p.Code == core.CodeInvalid:
		return p.Status, refuse(codeRequest, p.Detail)
	case p.Status >= http.StatusInternalServerError:
		return p.Status, refuse(codeInternal, p.Detail)
	default:
		return p.Status, refuse(codeRefused, p.Detail)
	}
}

// errNoTask says that there is no such task, or none that a message has made.
var errNoTask = refuse(codeNoTask, "there is no such task")

// call is one call.
type call struct {
	*http.Request

	id     json.RawMessage
	agent  string
	method method
	params fields.Fields
}

// ids are those that JSON-RPC allows a request: a text, a whole number or null.
var ids = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(".*"|-?\d{1,20}|null)$`)
})

// readCall reads a request. The call is never nil, as the answer has its id.
func readCall(r *http.Request) (*call, error) {
	c := &call{Request: r, agent: r.PathValue("agent"), id: json.RawMessage("null")}
	data, err := requestbody.JSON(r)
	switch inv, is := errors.AsType[*core.InvalidError](err); {
	case is:
		return c, refuse(codeRequest, "the "+inv.Error())
	case err != nil:
		return c, err
	case !json.Valid(data):
		return c, refuse(codeParse, "the body is not valid JSON")
	}
	return c, c.read(data)
}

// read reads the body of a request.
func (c *call) read(data []byte) error {
	f, err := fields.Of("request", data)
	if err != nil {
		return refuse(codeRequest, err.Error())
	}
	var rpc, name string
	if id, has := f["id"]; has && ids().Match(id) {
		c.id = id
	} else if has {
		return refuse(codeRequest, "id must be a string, a whole number or null")
	}
	if err := f.Need("jsonrpc", `"2.0"`, &rpc); err != nil || rpc != jsonrpc {
		return refuse(codeRequest, `jsonrpc must be "2.0"`)
	}
	if err := f.Need("method", "a string", &name); err != nil || name == "" {
		return refuse(codeRequest, "method must be a string")
	}
	if err := c.choose(name); err != nil {
		return err
	}
	c.params = fields.Fields{}
	if params := f["params"]; params != nil && !f.Null("params") {
		if c.params, err = fields.Of("params", params); err != nil {
			return err
		}
	}
	var tenant string
	if _, err := c.params.Take("tenant", "a string", &tenant); err != nil || tenant != "" {
		return &core.InvalidError{Field: "tenant", Reason: "must be left out: the path names the agent"}
	}
	return nil
}

// choose finds the method of a name, in the version that the caller says it speaks. One that says nothing speaks that of the method.
func (c *call) choose(name string) error {
	said := c.Header.Get(versionHeader)
	if said == "" {
		said = c.URL.Query().Get(versionHeader)
	}
	m, known := methods[name]
	switch {
	case said != "" && version(said) != v1 && version(said) != v03:
		return refuse(codeVersion, versionHeader+" must be 1.0 or 0.3")
	case !known:
		return refuse(codeMethod, "there is no such method")
	case said != "" && version(said) != m.version:
		return refuse(codeMethod, "the method is one of version "+string(m.version)+", and "+versionHeader+" is "+said)
	}
	c.method = m
	return nil
}
