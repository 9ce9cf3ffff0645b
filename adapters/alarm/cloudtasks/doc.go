// Package cloudtasks has Google's Cloud Tasks call a service when something falls due: it is a core.Alarm. Each time is a task of a queue, which posts
// {"all": true} to a URL with an OIDC token of a service account, and does it again if it is answered with anything but 2xx.
//
// adapters/gcf takes that for a tick, after its Verify has looked at the token; so does POST /v1/run-due of duly's API, if the file lists the account
// among its senders.
package cloudtasks
