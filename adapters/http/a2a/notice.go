package a2a

// What is posted when a task has ended.

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/seed-6f6f2c11/duly/core"
)

// Form is the name by which the fragment of a callback asks for [Notices].
const Form = "a2a"

// The other names in that fragment.
const (
	fragmentID    = "id"
	fragmentToken = "token"
)

// tokenHeader is where a receiver finds the token that it has given.
const tokenHeader = "X-A2A-Notification-Token" //nolint:gosec // a name

// Notices writes the callbacks of tasks as push notifications of the protocol, each once its task has ended. It is a form of callbacks of package
// handlers/webhook, by the name [Form].
type Notices struct{}

// Write makes of the message of a callback a task of the protocol, in the version that the fragment of the URL names.
func (Notices) Write(said url.Values, message []byte) (media string, header http.Header, body []byte, err error) {
	var t core.TaskInfo
	if err := json.Unmarshal(message, &t); err != nil {
		return "", nil, nil, err
	}
	header = http.Header{}
	if token := said.Get(fragmentToken); token != "" {
		header.Set(tokenHeader, token)
	}
	v := version(said.Get(Form))
	media = "application/json"
	if v == v1 {
		media = "application/a2a+json"
		header.Set(versionHeader, string(v))
	}
	body, err = json.Marshal(wrapped(shown(&t, v), v))
	return media, header, body, err
}
