// Package attack attacks duly as SECURITY.md says that it may be attacked: callers without a right, hostile ids, requests and
// answers, replays, floods, and a tenant that wants what another one has. All of it is tests, against the real handlers, the binary
// and a private Redis; a claim of SECURITY.md names the test that tries to break it.
package attack
