package a2a

// The calls of the protocol, and who may make them.

import (
	"cmp"
	"net/http"
	"time"

	"github.com/seed-6f6f2c11/duly/adapters/internal/door"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// DefaultWait is how long a client waits for the end of its task, unless the door says otherwise: less than the minute after which most give up.
const DefaultWait = 20 * time.Second

// Door has the calls, for every agent. Kind is required.
type Door struct {
	// Kind is that of the tasks that messages become: what has its handler does the work of the agents.
	Kind string
	// Description says what the agents do. It is shown to every client, in their cards.
	Description string
	// URL is where clients reach the server: scheme, host and the path that a proxy adds. If it is empty, a card has the host of its request.
	URL string
	// Push says that callbacks are delivered, so that clients may ask for push notifications.
	Push bool
	// Secured says that calls need a bearer token, which the cards announce.
	Secured bool
	// Wait is how long a call may wait for the end of a task: DefaultWait if zero.
	Wait time.Duration
}

// api answers the requests.
type api struct {
	scheduler *core.Scheduler
	host      door.Host
	door      Door
}

// Routes are the calls of the API: one address for each agent, and its card, which every client may see.
func (d Door) Routes(s *core.Scheduler, host door.Host) []door.Route {
	d.Wait = cmp.Or(d.Wait, DefaultWait)
	a := &api{scheduler: s, host: host, door: d}
	return []door.Route{
		{Method: http.MethodPost, Path: "/a2a/{agent}", Asks: true, Submits: true, Respond: a.serve},
		{Method: http.MethodGet, Path: "/a2a/{agent}/" + cardPath, Open: true, Respond: a.card},
	}
}

// method is one method of the protocol.
type method struct {
	version version
	needs   model.Action // what the caller must be allowed to do; if empty the method asks itself, or shows nothing
	do      func(a *api, c *call) (any, error)
}

// methods are those of both versions: their names differ, so that a name says which version its caller speaks.
var methods = map[string]method{
	"SendMessage": {version: v1, do: (*api).send},
	"GetTask":     {v1, model.ActionRead, (*api).get},
	"ListTasks":   {v1, model.ActionRead, (*api).list},
	"CancelTask":  {v1, model.ActionControl, (*api).cancel},

	"message/send": {version: v03, do: (*api).send},
	"tasks/get":    {v03, model.ActionRead, (*api).get},
	"tasks/cancel": {v03, model.ActionControl, (*api).cancel},

	"CreateTaskPushNotificationConfig": {v1, model.ActionControl, (*api).createPush},
	"GetTaskPushNotificationConfig":    {v1, model.ActionRead, (*api).getPush},
	"ListTaskPushNotificationConfigs":  {v1, model.ActionRead, (*api).listPush},
	"DeleteTaskPushNotificationConfig": {v1, model.ActionControl, (*api).deletePush},

	"tasks/pushNotificationConfig/set":    {v03, model.ActionControl, (*api).createPush},
	"tasks/pushNotificationConfig/get":    {v03, model.ActionRead, (*api).getPush},
	"tasks/pushNotificationConfig/list":   {v03, model.ActionRead, (*api).listPush},
	"tasks/pushNotificationConfig/delete": {v03, model.ActionControl, (*api).deletePush},

	"SendStreamingMessage": {version: v1, do: unsupported("duly streams nothing here: send the message by SendMessage")},
	"SubscribeToTask":      {version: v1, do: unsupported("duly streams nothing here: ask by GetTask, or for push notifications")},
	"message/stream":       {version: v03, do: unsupported("duly streams nothing here: send the message by message/send")},
	"tasks/resubscribe":    {version: v03, do: unsupported("duly streams nothing here: ask by tasks/get, or for push notifications")},

	"GetExtendedAgentCard":               {version: v1, do: noOtherCard},
	"agent/getAuthenticatedExtendedCard": {version: v03, do: noOtherCard},
}

// unsupported refuses a method that the protocol leaves to an agent.
func unsupported(why string) func(*api, *call) (any, error) {
	return func(*api, *call) (any, error) { return nil, refuse(codeUnsupported, why) }
}

// noOtherCard says that there is one card for all clients.
func noOtherCard(*api, *call) (any, error) {
	return nil, refuse(codeNoCard, "the agent has no card but the public one")
}

// serve answers a request. What is wrong with it, or with its caller, is found out before any store is called.
func (a *api) serve(r *http.Request) (int, any, error) {
	c, err := readCall(r)
	var result any
	// guard: a2a-rights
	if err == nil && c.method.needs != "" {
		err = a.scheduler.Authorize(r.Context(), core.Access{Action: c.method.needs, Agent: c.agent})
	}
	if err == nil {
		result, err = c.method.do(a, c)
	}
	if err != nil {
		status, failed := failureOf(err)
		if status >= http.StatusInternalServerError {
			a.host.Failed(r, err)
		}
		return status, response{Version: jsonrpc, ID: c.id, Error: failed}, nil
	}
	return http.StatusOK, response{Version: jsonrpc, ID: c.id, Result: result}, nil
}
