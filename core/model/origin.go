package model

// By which run a task was submitted.

import (
	"net/url"
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

// Defaults of Config.MaxDepth and Config.MaxSpawned.
const (
	DefaultMaxDepth   = 8
	DefaultMaxSpawned = 1000
)
