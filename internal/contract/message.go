package contract

// Messages: a run as functions and queues get it, that no header says anything to.

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
)

// MessageID names a call of the handler of a task: the receiver can tell by it that a message is repeated.
// Lengths stand before the ids, so that no two pairs give the same text.
func MessageID(t *core.RunInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d:%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Occurrence.UnixMilli(), t.Call()))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// message is a run with what a webhook has in its headers.
type message struct {
	Message string      `json:"message_id"`            // as Webhook-Id of a webhook
	From    string      `json:"duly_parent,omitempty"` // as Duly-Parent
	Values  core.Values `json:"values,omitempty"`      // of bindings, by their names
	ReplyTo string      `json:"reply_to,omitempty"`    // the call of the API that takes the answer, if one is waited for

	*input
}

// EncodeMessage is the JSON of a run for a function or a queue, and the path of the API that takes its answer, if it is to answer later. It fails as Encode does.
func EncodeMessage(ctx context.Context, t *core.Task[json.RawMessage], replyTo string) ([]byte, error) {
	in, err := inputOf(t)
	if err != nil {
		return nil, err
	}
	return json.Marshal(message{Message: MessageID(t.RunInfo), From: core.ParentOf(ctx), Values: t.Bound(), ReplyTo: replyTo, input: in})
}
