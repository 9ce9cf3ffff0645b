// Package world runs whole histories of duly in virtual time: several schedulers over one store, clients and operators that act at
// random, and a network, clocks and processes that fail. One seed is one history, and the same seed is the same history again.
//
// A history is planned from its seed ([PlanOf]), then played ([Play]) in one synctest bubble. All possible next steps are in a
// line: calls of the store, timers, handlers, requests, faults. Once every goroutine waits, the driver picks one of them by the
// seed, lets it happen, and waits again; so only one thing happens at a time, however many goroutines there are. An auditor sees
// each of them and compares it with what duly promises: see [Register].
package world
