// Package memos serves somebody else's API: that of MemOS' scheduler, so that what talks to it can talk to duly. Paths,
// shapes, messages and codes are those of MemOS. A user there is an agent here, a business task a group, and a label a kind.
//
// adapters/http mounts the [Routes]. Outside of this package nothing of MemOS is known but the labels that a task keeps for its
// sender.
package memos
