// Package http serves a scheduler over HTTP: running what is due for some agents, submitting tasks, and reading
// their outcomes. Import it as httpadapter.
//
// Requests and answers are JSON. Errors are problem details (RFC 9457) with a code that programs act on. A request that
// is refused, because it has no token, cannot be read or makes no sense, costs no call of the store.
package http
