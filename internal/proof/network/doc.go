// Package network gives duly the network that it will have one day: answers are lost, connections are cut, hang half open or are
// killed by an operator, and Redis forgets its scripts, while work continues.
//
// It has no code but tests.
package network
