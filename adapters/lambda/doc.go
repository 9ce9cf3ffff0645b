// Package lambda runs a scheduler in AWS Lambda: it takes the JSON of an event, finds out what sent it, and answers in the
// form that the sender reads. Import it as lambdaadapter.
//
//	event                                         does                                 answers
//	EventBridge rule or Scheduler, {"kind":"tick"}  runs what is due                     the report
//	SQS                                           submits the tasks of each record     the records that failed
//	SQS, of Config.AlarmQueue                     runs what is due, when it is     that none failed
//	Function URL, API Gateway, Load Balancer      serves one request by Config.HTTP    the HTTP answer
//
// Any other event is an *[UnknownEventError]; it never counts as a tick.
//
// A tick may have the fields of POST /v1/run-due (agent_ids or all, max, timeout_ms) and, so that a repeated delivery is
// recognised, what EventBridge Scheduler puts in its place:
//
//	{"kind": "tick", "schedule-arn": "<aws.scheduler.schedule-arn>", "scheduled-time": "<aws.scheduler.scheduled-time>"}
//
// The package imports nothing of AWS. A main hands [Function.Invoke] to the runtime's loop, as sam/ does:
//
//	lambda.StartWithOptions(f.Invoke)
package lambda
