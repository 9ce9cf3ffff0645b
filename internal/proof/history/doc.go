// Package history checks that commands about one task, which many clients give at once through Go, HTTP and the command line
// while workers run it, take effect one after the other: each at one moment between its call and its return, as if it ran alone
// (they are linearizable). It records the calls and answers of all clients, and lets porcupine look for an order of these
// moments in which a model of the promises gives the same answers.
//
// It has no code but tests.
package history
