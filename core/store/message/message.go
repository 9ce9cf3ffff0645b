// Package message is what a store remembers of messages from senders that send at least once, each of which is to count once.
package message

import "time"

// Receipt is what is noted of one delivery of a message.
type Receipt struct {
	Message string        // which one: the same at each delivery, and different for each sender
	By      string        // the delivery: as many characters as a nonce has, drawn at random
	Content string        // a digest of what it asks for
	State   State         // of the message
	For     time.Duration // how long that is remembered, from now
}

// Received is what was known of a message before; its State is zero if nothing was.
type Received struct {
	State   State
	Content string
}

// State is the state of a message. It is a letter, as it is stored.
type State byte

// The states of a message.
const (
	Begun   State = 'b' // a process carries it out
	Done    State = 'd' // it was carried out
	Dropped State = 'x' // it was not, and may be delivered again
)
