// Package gcf runs a scheduler in Google Cloud Run and Cloud Run functions (once Cloud Functions): as an HTTP function, which
// is an http.Handler, and as a CloudEvent function.
//
//	request or event                                  does                              answers
//	Cloud Scheduler or Cloud Tasks, with its headers  runs what is due                  the report
//	Pub/Sub push to "/", wrapped or with metadata     submits tasks, or runs what is due  what became of them, or the report
//	CloudEvent: Pub/Sub, or Eventarc with JSON        the same                          the same
//	any other request                                 is served by Config.HTTP          its answer
//
// A message holds the tasks as POST /v1/tasks takes them, or a tick: {"kind":"tick"} with the fields of POST /v1/run-due
// (agent_ids or all, max, timeout_ms). A tick is for all agents unless it names some. Anything else is refused, and never
// counts as a tick.
//
// The package imports the CloudEvents SDK but not the functions framework: a main, or the file that is deployed as source,
// registers [Function.ServeHTTP] or [Function.Event] with it, as examples/cloud-function does.
package gcf
