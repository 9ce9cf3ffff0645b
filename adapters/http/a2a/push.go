package a2a

// Push notifications: a task has one receiver, which is its callback.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/seed-6f6f2c11/duly/adapters/internal/fields"
	"github.com/seed-6f6f2c11/duly/core"
)

// pushConfig is where the end of a task is posted. In 1.0 it names its task, too.
type pushConfig struct {
	Task  string `json:"taskId,omitempty"`
	ID    string `json:"id"`
	URL   string `json:"url"`
	Token string `json:"token,omitempty"`
}

// ofTask is a receiver and its task, as 0.3 has them.
type ofTask struct {
	Task   string     `json:"taskId"`
	Config pushConfig `json:"pushNotificationConfig"`
}

var (
	// headerValues are tokens that a header can have, if they are not longer than longestToken.
	headerValues = regexp.MustCompile(`^[!-~]*$`)
	errNoPush    = refuse(codeNoPush, "this server posts no push notifications: its duly.yaml has no callbacks")
	errNoConfig  = refuse(codeNoTask, "there is no such push notification config")
)

const longestToken = 256

// readPush reads where a client wants to be notified.
func readPush(name string, data json.RawMessage, push bool) (*pushConfig, error) {
	if !push {
		return nil, errNoPush
	}
	f, err := fields.Of(name, data)
	if err != nil {
		return nil, err
	}
	var p pushConfig
	if err := f.Need("url", "a string", &p.URL); err != nil {
		return nil, err
	}
	for name, into := range map[string]*string{"id": &p.ID, "token": &p.Token} {
		if _, err := f.Take(name, "a string", into); err != nil {
			return nil, err
		}
	}
	switch {
	case strings.Contains(p.URL, "#"):
		return nil, &core.InvalidError{Field: "url", Reason: "must have no fragment"}
	case len(p.Token) > longestToken || !headerValues.MatchString(p.Token):
		return nil, &core.InvalidError{Field: "token", Reason: "must be at most 256 visible ASCII characters, as it is sent in a header"}
	// What is stored with a task is shown to all who may read the task: a password of the receiver must not be among it.
	case f["authentication"] != nil && !f.Null("authentication"):
		return nil, &core.InvalidError{Field: "authentication", Reason: "must be left out: duly signs what it posts, and sends a token back in " + tokenHeader}
	}
	return &p, nil
}

// callback is the callback of a task: the URL, and behind it, where no request has it, in which form and with which token it is called.
func (p *pushConfig) callback(v version) string {
	said := url.Values{Form: {string(v)}}
	if p.ID != "" {
		said.Set(fragmentID, p.ID)
	}
	if p.Token != "" {
		said.Set(fragmentToken, p.Token)
	}
	return p.URL + "#" + said.Encode() // whose names are in order: the form is first
}

// pushOf is the receiver of a task; nil if it has none, or another callback.
func pushOf(t *core.TaskInfo) *pushConfig {
	to, fragment, _ := strings.Cut(t.Callback, "#")
	said, err := url.ParseQuery(fragment)
	if err != nil || !said.Has(Form) {
		return nil
	}
	return &pushConfig{Task: t.ID, ID: cmp.Or(said.Get(fragmentID), t.ID), URL: to, Token: said.Get(fragmentToken)}
}

// in is a receiver in a version.
func (p *pushConfig) in(v version) any {
	if v == v1 {
		return p
	}
	plain := *p
	plain.Task = ""
	return ofTask{Task: p.Task, Config: plain}
}

// receiver is the task that a call names, and its receiver, whose id is that of the call if it has one.
func (a *api) receiver(c *call) (*core.TaskInfo, *pushConfig, error) {
	if !a.door.Push {
		return nil, nil, errNoPush
	}
	ofTask, own := "taskId", "id"
	if c.method.version == v03 {
		ofTask, own = "id", "pushNotificationConfigId"
	}
	t, err := a.named(c, ofTask)
	if err != nil {
		return nil, nil, err
	}
	var id string
	if _, err := c.params.Take(own, "a string", &id); err != nil {
		return nil, nil, err
	}
	p := pushOf(t)
	if p != nil && id != "" && id != p.ID {
		p = nil
	}
	return t, p, nil
}

// getPush answers with the receiver of a task.
func (a *api) getPush(c *call) (any, error) {
	_, p, err := a.receiver(c)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errNoConfig
	}
	return p.in(c.method.version), nil
}

// listPush answers with the receivers of a task, of which there is at most one.
func (a *api) listPush(c *call) (any, error) {
	v := c.method.version
	if v == v1 {
		delete(c.params, "id")
	}
	_, p, err := a.receiver(c)
	if err != nil {
		return nil, err
	}
	all := []any{}
	if p != nil {
		all = append(all, p.in(v))
	}
	if v == v03 {
		return all, nil
	}
	return struct {
		Configs []any `json:"configs"`
	}{all}, nil
}

// createPush gives a task that waits its receiver. A second one with another id is refused.
func (a *api) createPush(c *call) (any, error) {
	name, given := "params", c.params.JSON()
	if c.method.version == v03 {
		name = "pushNotificationConfig"
		if given = c.params[name]; given == nil {
			return nil, &core.InvalidError{Field: name, Reason: "is required"}
		}
	}
	p, err := readPush(name, given, a.door.Push)
	if err != nil {
		return nil, err
	}
	t, err := a.named(c, "taskId")
	if err != nil {
		return nil, err
	}
	if old := pushOf(t); old != nil && old.ID != cmp.Or(p.ID, t.ID) {
		return nil, refuse(codeUnsupported, fmt.Sprintf("a task has one push notification config: delete %q first", old.ID))
	}
	if err := a.setCallback(c, t.ID, p.callback(c.method.version)); err != nil {
		return nil, err
	}
	p.Task, p.ID = t.ID, cmp.Or(p.ID, t.ID)
	return p.in(c.method.version), nil
}

// deletePush takes the receiver of a task away.
func (a *api) deletePush(c *call) (any, error) {
	t, p, err := a.receiver(c)
	switch {
	case err != nil:
		return nil, err
	case p == nil:
		return nil, errNoConfig
	}
	return nil, a.setCallback(c, t.ID, nil)
}

// setCallback changes the callback of a task; nil takes it away. The task has to wait: what runs may be about to end.
func (a *api) setCallback(c *call, id string, callback any) error {
	change, err := json.Marshal(map[string]any{"callback": callback})
	if err != nil {
		return err
	}
	_, err = a.scheduler.Edit(c.Context(), c.agent, id, change)
	if core.CodeOf(err) == core.CodeConflict {
		return refuse(codeUnsupported, "the task runs or has ended: give the push notification config with the message")
	}
	return err
}
