package beside

// Messages of senders.

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/store/message"
	"github.com/seed-6f6f2c11/duly/core/storetest/given"
)

// A message is taken by one delivery, until that has dropped it or its time is over.
func testMessages(_ *testing.T, b *bench) {
	b.with(given.Options{})
	receive := func(r message.Receipt) message.Received {
		got, err := b.store.Receive(b.Context(), r)
		require.NoError(b, err)
		return got
	}
	begun := func(name string) message.Received {
		return message.Received{State: message.Begun, Content: "what " + name + " asks for"}
	}
	done := message.Received{State: message.Done, Content: "what m asks for"}
	first := given.Receipt("m", "a", message.Begun, time.Minute)
	assert.Zero(b, receive(first))
	assert.Zero(b, receive(first), "its answer was lost")
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "b", message.Begun, time.Hour)))
	assert.Zero(b, receive(given.Receipt("n", "b", message.Begun, time.Hour)), "another message")

	assert.Zero(b, receive(given.Receipt("m", "b", message.Dropped, 0)))
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "b", message.Begun, time.Hour)), "nobody drops what another delivery has taken")
	assert.Zero(b, receive(given.Receipt("m", "a", message.Dropped, 0)))
	assert.Zero(b, receive(given.Receipt("m", "c", message.Begun, time.Minute)))
	b.clock.Advance(time.Minute)
	assert.Zero(b, receive(given.Receipt("m", "d", message.Begun, time.Minute)), "the process of the third has died")
	assert.Zero(b, receive(given.Receipt("m", "c", message.Dropped, 0)))
	assert.Equal(b, begun("m"), receive(given.Receipt("m", "e", message.Begun, time.Minute)), "it was only slow")

	assert.Zero(b, receive(given.Receipt("m", "d", message.Done, 10*time.Minute)))
	assert.Zero(b, receive(given.Receipt("m", "d", message.Done, 10*time.Minute)))
	assert.Zero(b, receive(given.Receipt("m", "d", message.Dropped, 0)))
	b.clock.Advance(10*time.Minute - time.Millisecond)
	assert.Equal(b, done, receive(given.Receipt("m", "f", message.Begun, time.Minute)), "what was carried out stays so")
	b.clock.Advance(time.Millisecond)
	assert.Zero(b, receive(given.Receipt("m", "f", message.Begun, time.Minute)))
	assert.Equal(b, begun("n"), receive(given.Receipt("n", "f", message.Begun, time.Minute)), "each has its own time")
	for range 3 { // more than are forgotten at once
		for i := range 100 {
			assert.Zero(b, receive(given.Receipt(fmt.Sprint(i), "g", message.Done, time.Second)))
		}
		b.clock.Advance(time.Second)
	}
	assert.Equal(b, begun("n"), receive(given.Receipt("n", "f", message.Begun, time.Minute)))
}
