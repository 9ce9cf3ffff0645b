package beside

// Messages of senders, which are carried out once.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/call"
	"github.com/seed-6f6f2c11/duly/core/redisstore/internal/layout"
	"github.com/seed-6f6f2c11/duly/core/store/message"
)

// Receive notes the state of a message; see [store.Messages]. All messages are in the first partition, which every layout has.
func (s *Store) Receive(ctx context.Context, r message.Receipt) (message.Received, error) {
	args := []any{r.Message, r.By, string(r.State), r.Content, r.For.Milliseconds()}
	replies, err := s.db.Run(ctx, "receive", []call.Call{{Script: &s.db.Scripts.Receive, Args: args}})
	if err != nil || len(replies[0]) < 3 {
		return message.Received{}, err
	}
	state := layout.Text(replies[0][1])
	if len(state) != 1 {
		return message.Received{}, call.Wrap("receive", layout.ErrMalformed)
	}
	return message.Received{State: message.State(state[0]), Content: layout.Text(replies[0][2])}, nil
}
