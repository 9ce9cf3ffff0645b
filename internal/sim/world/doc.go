// Package world runs whole histories of duly in virtual time: several schedulers over one store, clients and operators that do what
// they like, and a network, clocks and processes that fail. One seed is one history, and the same seed is the same history again.
//
// A history is planned from its seed ([PlanOf]), then played ([Play]) in one synctest bubble. Whatever could happen next stands in
// a line: calls of the store, timers, handlers, requests, faults. Once every goroutine waits, the driver picks one of them by the
// seed, lets it happen, and waits again; so only one thing happens at a time, however many goroutines there are. An auditor sees
// each of them and compares it with what duly promises: see [Register].
package world
