package model

// By which run a task was submitted.

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
)

// Origin says by which run a task was submitted.
type Origin struct {
	By    TaskName // the task whose run has submitted it
	Root  TaskName // the first of its ancestors, which no run has submitted
	Depth int      // how far it is below that: 1 for what the runs of the root submit
}

// TaskName names a task.
type TaskName struct {
	Agent string `json:"agent_id"`
	ID    string `json:"id"`
}

// String is the name as the header Duly-Parent and the variable DULY_PARENT have it: agent and id, escaped as in the path of a URL.
func (n TaskName) String() string { return url.PathEscape(n.Agent) + "/" + url.PathEscape(n.ID) }

// Parse reads what String has made.
func (n *TaskName) Parse(text string) error {
	agent, id, both := strings.Cut(text, "/")
	var err1, err2 error
	n.Agent, err1 = url.PathUnescape(agent)
	n.ID, err2 = url.PathUnescape(id)
	if err := errors.Join(err1, err2, check.ValidID("agent_id", n.Agent), check.ValidID("id", n.ID)); !both || err != nil {
		return fmt.Errorf("%q must be an agent and the id of a task, with a slash between them and each escaped as in the path of a URL", check.Clip(text))
	}
	return nil
}

// Defaults of Config.MaxDepth and Config.MaxSpawned.
const (
	DefaultMaxDepth   = 8
	DefaultMaxSpawned = 1000
)
