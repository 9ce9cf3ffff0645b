package store

// Messages: deliveries of senders that send at least once, each of which is to count once.

import (
	"context"
	"time"
)

// Messages is what a store remembers of messages, for all processes.
type Messages interface {
	// Receive notes the state of a message, in one atomic step. ReceiptBegun takes it for a delivery, unless another one has: it returns
	// what is known of that, and changes nothing then. ReceiptDone records that it was carried out, and ReceiptDropped forgets
	// it if the same delivery has taken it. The same request again changes nothing more.
	Receive(ctx context.Context, r Receipt) (Received, error)
}

// Receipt is what is noted of one delivery of a message.
type Receipt struct {
	Message string        // which one: the same at each delivery, and different for each sender
	By      string        // the delivery: NonceLen characters, drawn at random
	Content string        // a digest of what it asks for
	State   ReceiptState  // of the message
	For     time.Duration // how long that is remembered, from now
}

// Received is what was known of a message before; its State is zero if nothing was.
type Received struct {
	State   ReceiptState
	Content string
}

// ReceiptState is the state of a message. It is a letter, as it is stored.
type ReceiptState byte

// The states of a message.
const (
	ReceiptBegun   ReceiptState = 'b' // a process carries it out
	ReceiptDone    ReceiptState = 'd' // it was carried out
	ReceiptDropped ReceiptState = 'x' // it was not, and may be delivered again
)
