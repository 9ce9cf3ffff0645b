// Package memos serves the API of MemOS' scheduler, so that clients of MemOS can talk to duly. Paths,
// shapes, messages and codes are MemOS's. A user there is an agent here, a business task a group, and a label a kind.
//
// adapters/http mounts the [Routes]. Outside of this package the only traces of MemOS are the labels that a task keeps for its
// sender.
package memos
