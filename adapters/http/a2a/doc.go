// Package a2a serves the Agent2Agent protocol, so that its clients give an agent of duly work, see what became of it and cancel it, and are notified of its
// end: version 1.0 and version 0.3, both by JSON-RPC. An agent there is an agent here, and each message a task of the kind that [Door] names.
//
// [Door] has the calls, and [Notices] makes of the callback of a task what the protocol posts. All state is in tasks, so that any process answers for what
// another one has taken.
package a2a
