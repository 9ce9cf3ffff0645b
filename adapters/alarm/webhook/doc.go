// Package webhook asks any server to call back when something falls due: it is a core.Alarm. Each time is posted as
//
//	{"at": "2026-11-23T09:00:00Z"}
//
// with a Webhook-Id that is the same for the same time. The server answers 2xx once it has stored the time durably, so that it survives its own restart, and
// calls duly at that time: POST /v1/run-due with {"all": true}, or another request that duly's host accepts as a tick. Any scheduler of one-time jobs can
// be put behind it: at, a timer of systemd, a workflow engine. With a secret the message is signed, as Standard Webhooks describe it.
package webhook
