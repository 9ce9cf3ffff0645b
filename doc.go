// Package duly runs due tasks for AI agents on one Redis. It holds no code:
// package core is the library, cmd/duly the binary, and the folders under
// adapters fit the core to its hosts.
package duly
