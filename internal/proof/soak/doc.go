// Package soak runs duly for long, and with very much in one place: nothing in Redis or in the process may grow without bound.
//
// It has no code but tests.
package soak
