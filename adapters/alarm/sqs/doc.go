// Package sqs has AWS call a function when something falls due: it is a core.Alarm. A time within 15 minutes is a message of SQS that is delayed by
// as much, to the second. A later one is a schedule of EventBridge Scheduler, which is deleted when it has fired; that is exact to a minute only, so it
// fires one to two minutes early, and puts the same message in the queue.
//
// Each message says which time it is about:
//
//	{"kind": "tick", "at": "2026-11-23T09:00:00Z"}
//
// A consumer that receives one early sets the same time again, as a message that is delayed for the rest: adapters/lambda does, for the queue in its
// Config.AlarmQueue. Without a RoleARN there are no schedules: the message is received and sent again every 15 minutes.
package sqs
