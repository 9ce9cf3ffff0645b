// Package console serves pages for people: what is due, running, late and wrong, each agent and task, and every control that the HTTP API has. A
// browser needs nothing else: scripts only keep a page fresh, and all of it is embedded. The pages are below [Path].
//
// Who may see and steer what is asked with each request: by the callers of the HTTP API, whose rights count here too. A form is answered only if it
// comes from a page of the console, in the session that the page was made for.
package console
