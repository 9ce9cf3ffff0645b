// Package letta serves the schedules of Letta's API, so that clients of Letta schedule messages with duly: the four calls below
// /v1/agents/{agent_id}/schedule. An agent there is an agent here, and a scheduled message a task of the kind [Kind].
//
// [Door] has the calls, and [Messages] makes of a task what is posted to the Letta server. All state is in tasks, so that any process continues what
// another one has begun.
package letta
