package a2a

// A message becomes a task.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"sync"

	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// taskIDs are the ids of tasks that messages have made. Behind the digest is the context, as little else is kept of a task that has ended.
var taskIDs = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^a2a-[0-9a-f]{32}-([^\pC]+)$`)
})

// longestContext is how long the id of a context may be, in bytes, so that it fits into that of a task.
const longestContext = 200

// identify makes the ids of a message that are missing. They follow from the id of the message, so that one that is sent again means the same task.
func (m *sent) identify(agent string) (task string) {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(agent), agent, m.id))
	digest := hex.EncodeToString(sum[:16])
	m.context = cmp.Or(m.context, digest)
	return "a2a-" + digest + "-" + m.context
}

// contextOf is the context of a task that a message has made; empty for the id of another one.
func contextOf(task string) string {
	if parts := taskIDs().FindStringSubmatch(task); parts != nil {
		return parts[1]
	}
	return ""
}

// sent is what a call sends.
type sent struct {
	whole   json.RawMessage // the message
	id      string
	context string
	task    string // that it is about; empty for a new one
	wait    bool
	info    json.RawMessage // metadata of the call
	push    *pushConfig     // nil if its sender wants no notification
}

// readSent reads the parameters of a send; push says whether its sender may be notified.
func readSent(c *call, push bool) (*sent, error) {
	m := &sent{whole: c.params["message"]}
	if m.whole == nil {
		return nil, &core.InvalidError{Field: "message", Reason: "is required"}
	}
	f, err := fields.Of("message", m.whole)
	if err != nil {
		return nil, err
	}
	if err := m.readMessage(f, c.method.version); err != nil {
		return nil, err
	}
	if metadata := c.params["metadata"]; metadata != nil && !c.params.Null("metadata") {
		if _, err := fields.Of("metadata", metadata); err != nil {
			return nil, err
		}
		m.info = metadata
	}
	return m, m.configure(c, push)
}

// readMessage reads the fields of a message.
func (m *sent) readMessage(f fields.Fields, v version) error {
	user := map[version]string{v1: "ROLE_USER", v03: "user"}[v]
	var role string
	var parts []json.RawMessage
	if err := f.Need("messageId", "a string", &m.id); err != nil {
		return err
	}
	for name, into := range map[string]*string{"contextId": &m.context, "taskId": &m.task} {
		if _, err := f.Take(name, "a string", into); err != nil {
			return err
		}
	}
	if err := f.Need("role", "a string", &role); err != nil || role != user {
		return &core.InvalidError{Field: "role", Reason: fmt.Sprintf("must be %q", user)}
	}
	if err := f.Need("parts", "an array of objects", &parts); err != nil {
		return err
	}
	if m.id == "" {
		return &core.InvalidError{Field: "messageId", Reason: "must not be empty"}
	}
	if len(m.context) > longestContext || m.context != "" && contextOf("a2a-00000000000000000000000000000000-"+m.context) == "" {
		return &core.InvalidError{Field: "contextId", Reason: fmt.Sprintf("must have at most %d bytes, and no control characters", longestContext)}
	}
	if len(parts) == 0 {
		return &core.InvalidError{Field: "parts", Reason: "must have at least one part"}
	}
	for i, p := range parts {
		if err := checkPart(fmt.Sprintf("parts[%d]", i), p, v); err != nil {
			return err
		}
	}
	return nil
}

// contents are the fields that a part has one of, by the version, and in 0.3 by its kind.
var contents = map[version]map[string][]string{
	v1:  {"": {"text", "raw", "url", "data"}},
	v03: {"text": {"text"}, "file": {"file"}, "data": {"data"}},
}

// checkPart refuses a part that has not exactly one content.
func checkPart(name string, data json.RawMessage, v version) error {
	f, err := fields.Of(name, data)
	if err != nil {
		return err
	}
	var kind string
	if v == v03 {
		if err := f.Need("kind", "a string", &kind); err != nil {
			return &core.InvalidError{Field: name + ".kind", Reason: `must be "text", "file" or "data"`}
		}
	}
	known := contents[v][kind]
	if known == nil {
		return &core.InvalidError{Field: name + ".kind", Reason: `must be "text", "file" or "data"`}
	}
	if n := len(f.Only(known...)); n != 1 {
		return &core.InvalidError{Field: name, Reason: fmt.Sprintf("must have exactly one of %q", known)}
	}
	return nil
}

// configure reads how a message is to be answered. A client of 1.0 waits unless it says that it does not. One of 0.3 says that, too: the field has no default
// there, and the library of the protocol waits.
func (m *sent) configure(c *call, push bool) error {
	m.wait = true
	given := c.params["configuration"]
	if given == nil || c.params.Null("configuration") {
		return nil
	}
	f, err := fields.Of("configuration", given)
	if err != nil {
		return err
	}
	name := "taskPushNotificationConfig"
	if c.method.version == v03 {
		name = "pushNotificationConfig"
		_, err = f.Take("blocking", "true or false", &m.wait)
	} else {
		var immediately bool
		_, err = f.Take("returnImmediately", "true or false", &immediately)
		m.wait = !immediately
	}
	if wanted := f[name]; err == nil && wanted != nil && !f.Null(name) {
		m.push, err = readPush(name, wanted, push)
	}
	return err
}

// errOtherMessage says that a message has the id of another one.
var errOtherMessage = &core.InvalidError{Field: "messageId", Reason: "was used for another message: give each message an id of its own"}

// send stores a message as a task, or finds the task that it has become before, and waits for the end of that if its sender does.
func (a *api) send(c *call) (any, error) {
	m, err := readSent(c, a.door.Push)
	if err != nil {
		return nil, err
	}
	if m.task != "" {
		return a.reply(c, m)
	}
	if err := a.scheduler.Authorize(c.Context(), core.Access{Action: model.ActionSubmit, Agent: c.agent}); err != nil {
		return nil, err
	}
	t := core.NewTask{Agent: c.agent, ID: m.identify(c.agent), Kind: a.door.Kind, SessionID: m.context, Payload: m.whole, Info: m.info}
	if m.push != nil {
		t.Callback = m.push.callback(c.method.version)
	}
	stored, err := a.scheduler.Submit(c.Context(), t)
	if err != nil {
		return nil, err
	}
	if stored[0].Differs {
		return nil, errOtherMessage
	}
	return a.answer(c, t.ID, m)
}

// answer is the task of a message. A caller that may not read learns that it is stored, and no more.
func (a *api) answer(c *call, id string, m *sent) (any, error) {
	v := c.method.version
	// guard: a2a-reads
	if !a.mayRead(c) {
		return wrapped(shown(&core.TaskInfo{ID: id, Status: core.StatusWaiting}, v), v), nil
	}
	t, err := a.task(c, id)
	if err == nil && m.wait && !over(t) {
		a.host.Wait(c.Request, a.door.Wait, func() bool {
			var now *core.TaskInfo
			if now, err = a.task(c, id); err == nil {
				t = now
			}
			return err != nil || over(t)
		})
	}
	if err != nil {
		return nil, err
	}
	return wrapped(shown(t, v), v), nil
}

// mayRead reports whether the caller may read the tasks of the agent.
func (a *api) mayRead(c *call) bool {
	return a.scheduler.Authorize(c.Context(), core.Access{Action: model.ActionRead, Agent: c.agent}) == nil
}

// wrapped is a task as the answer to a message: 1.0 says which of several objects it is by the name of the field.
func wrapped(t task, v version) any {
	if v == v1 {
		return struct {
			Task task `json:"task"`
		}{t}
	}
	return t
}
