// Package webhook is a ready-made handler that posts each task to a URL, as Standard Webhooks describe it: signed, with an
// id that stays when a message is repeated. It is the same for every host: duly daemon, the Lambda function, your own.
//
// The body is the run as JSON. The status of the answer decides the outcome of the run:
//
//	2xx                   it succeeded, and the body is the task's result
//	408, 425, 429, 5xx    it failed and is tried again; with Retry-After then, uncharged
//	410                   the task is cancelled
//	3xx, other 4xx        it failed, and trying again would not help
//
// An answer of 2xx may steer the run with a header: Duly-Snooze: 10m, Duly-Yield: 5m (the body is the checkpoint),
// Duly-Next-In: 1h, Duly-Progress: {"done": 3}. Any answer may say what the run has used: Duly-Usage: {"tokens": 1200}. docs/reference/webhook.md has the whole contract.
//
// Addresses that are not public are not called unless that is allowed, under any name. Redirects are not followed,
// and no proxy is used.
package webhook
