package storetest

// Messages of senders.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// receipt is one of a delivery that has a letter for a name.
func receipt(message, by string, state store.ReceiptState, lasts time.Duration) store.Receipt {
	return store.Receipt{Message: message, By: strings.Repeat(by, store.NonceLen), Content: "what " + message + " asks for", State: state, For: lasts}
}

// receive notes something about a message, and compares what was known of it.
func (d *driver) receive() {
	n := d.clock.Now().UnixMilli() // as good as drawn, and what is drawn for the others stays what it was
	r := receipt([]string{"m", "n"}[n%2], []string{"a", "b"}[n/2%2], store.ReceiptBegun, time.Duration(1+n/4%20)*50*time.Millisecond)
	r.State = []store.ReceiptState{store.ReceiptBegun, store.ReceiptBegun, store.ReceiptDone, store.ReceiptDropped}[n/100%4]
	ra, ea := d.a.Receive(d.Context(), r)
	rb, eb := d.b.Receive(d.Context(), r)
	d.same("receive", ea, eb, ra, rb)
}

// A message is taken by one delivery, until that has dropped it or its time is over.
func testMessages(_ *testing.T, b *bench) {
	b.with(Options{})
	receive := func(r store.Receipt) store.Received {
		got, err := b.store.Receive(b.Context(), r)
		require.NoError(b, err)
		return got
	}
	begun := func(message string) store.Received {
		return store.Received{State: store.ReceiptBegun, Content: "what " + message + " asks for"}
	}
	done := store.Received{State: store.ReceiptDone, Content: "what m asks for"}
	first := receipt("m", "a", store.ReceiptBegun, time.Minute)
	assert.Zero(b, receive(first))
	assert.Zero(b, receive(first), "its answer was lost")
	assert.Equal(b, begun("m"), receive(receipt("m", "b", store.ReceiptBegun, time.Hour)))
	assert.Zero(b, receive(receipt("n", "b", store.ReceiptBegun, time.Hour)), "another message")

	assert.Zero(b, receive(receipt("m", "b", store.ReceiptDropped, 0)))
	assert.Equal(b, begun("m"), receive(receipt("m", "b", store.ReceiptBegun, time.Hour)), "nobody drops what another delivery has taken")
	assert.Zero(b, receive(receipt("m", "a", store.ReceiptDropped, 0)))
	assert.Zero(b, receive(receipt("m", "c", store.ReceiptBegun, time.Minute)))
	b.clock.Advance(time.Minute)
	assert.Zero(b, receive(receipt("m", "d", store.ReceiptBegun, time.Minute)), "the process of the third has died")
	assert.Zero(b, receive(receipt("m", "c", store.ReceiptDropped, 0)))
	assert.Equal(b, begun("m"), receive(receipt("m", "e", store.ReceiptBegun, time.Minute)), "it was only slow")

	assert.Zero(b, receive(receipt("m", "d", store.ReceiptDone, 10*time.Minute)))
	assert.Zero(b, receive(receipt("m", "d", store.ReceiptDone, 10*time.Minute)))
	assert.Zero(b, receive(receipt("m", "d", store.ReceiptDropped, 0)))
	b.clock.Advance(10*time.Minute - time.Millisecond)
	assert.Equal(b, done, receive(receipt("m", "f", store.ReceiptBegun, time.Minute)), "what was carried out stays so")
	b.clock.Advance(time.Millisecond)
	assert.Zero(b, receive(receipt("m", "f", store.ReceiptBegun, time.Minute)))
	assert.Equal(b, begun("n"), receive(receipt("n", "f", store.ReceiptBegun, time.Minute)), "each has its own time")
	for range 3 { // more than are forgotten at once
		for i := range 100 {
			assert.Zero(b, receive(receipt(fmt.Sprint(i), "g", store.ReceiptDone, time.Second)))
		}
		b.clock.Advance(time.Second)
	}
	assert.Equal(b, begun("n"), receive(receipt("n", "f", store.ReceiptBegun, time.Minute)))
}
