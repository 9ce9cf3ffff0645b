// Package daemon runs due tasks for as long as a process lives: it sleeps until something is due and then pulls.
//
// It runs all agents of a store, or, with Config.Agents, those that are registered: then a pull asks for the agents that are
// dirty or whose time has come, in one fetch. A task that falls due while a tick of its agent is under way starts concurrently, unless
// core.Config.Serial is core.SerialAgent.
//
// One goroutine decides when to pull: when the store's earliest task falls due, when a wake-up announces that something is
// due sooner, and at the latest after Config.Safety, or after Config.Tick while there is work. Each pull has a goroutine
// of its own, as a slow handler keeps its pull open; but only one pull at a time claims.
//
// While the store is unavailable the daemon retries, at growing pauses of at most five seconds, and resumes by itself.
package daemon
