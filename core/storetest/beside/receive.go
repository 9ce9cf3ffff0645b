package beside

// Messages of senders.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// A message is taken by one delivery, until that has dropped it or its time is over.
func testMessages(_ *testing.T, b *bench) {
	b.with(given.Options{})
	receive := func(r store.Receipt) store.Received {
		got, err := b.store.Receive(b.Context(), r)
		require.NoError(b, err)
		return got
	}
	begun := func(message string) store.Received {
		return store.Received{State: store.ReceiptBegun, Content: "what " + message + " asks for"}
	}
	done := store.Received{State: store.ReceiptDone, Content: "what m asks for"}
	first := given.Receipt("m", "a", store.ReceiptBegun, time.Minute)
	assert.Zero(b, receive(first))
	assert.Zero(b, receive(first), "its answer was lost")
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "b", store.ReceiptBegun, time.Hour)))
	assert.Zero(b, receive(given.Receipt("n", "b", store.ReceiptBegun, time.Hour)), "another message")

	assert.Zero(b, receive(given.Receipt("m", "b", store.ReceiptDropped, 0)))
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "b", store.ReceiptBegun, time.Hour)), "nobody drops what another delivery has taken")
	assert.Zero(b, receive(given.Receipt("m", "a", store.ReceiptDropped, 0)))
	assert.Zero(b, receive(given.Receipt("m", "c", store.ReceiptBegun, time.Minute)))
	b.clock.Advance(time.Minute)
	assert.Zero(b, receive(given.Receipt("m", "d", store.ReceiptBegun, time.Minute)), "the process of the third has died")
	assert.Zero(b, receive(given.Receipt("m", "c", store.ReceiptDropped, 0)))
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "e", store.ReceiptBegun, time.Minute)), "it was only slow")

	assert.Zero(b, receive(given.Receipt("m", "d", store.ReceiptDone, 10*time.Minute)))
	assert.Zero(b, receive(given.Receipt("m", "d", store.ReceiptDone, 10*time.Minute)))
	assert.Zero(b, receive(given.Receipt("m", "d", store.ReceiptDropped, 0)))
	b.clock.Advance(10*time.Minute - time.Millisecond)
	assert.Equal(b, done, receive(given.Receipt("m", "f", store.ReceiptBegun, time.Minute)), "what was carried out stays so")
	b.clock.Advance(time.Millisecond)
	assert.Zero(b, receive(given.Receipt("m", "f", store.ReceiptBegun, time.Minute)))
	assert.Equal(b, begun("n"), receive(given.Receipt("n", "f", store.ReceiptBegun, time.Minute)), "each has its own time")
	for range 3 { // more than are forgotten at once
		for i := range 100 {
			assert.Zero(b, receive(given.Receipt(fmt.Sprint(i), "g", store.ReceiptDone, time.Second)))
		}
		b.clock.Advance(time.Second)
	}
	assert.Equal(b, begun("n"), receive(given.Receipt("n", "f", store.ReceiptBegun, time.Minute)))
}
