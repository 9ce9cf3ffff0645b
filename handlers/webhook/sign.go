package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/standardwebhooks"
)

// signingKey is the key of a secret; nil for no secret.
func signingKey(secret string) ([]byte, error) {
	key, err := standardwebhooks.Key(secret)
	if err != nil {
		return nil, &core.ConfigError{Field: "Secret", Reason: err.Error()}
	}
	return key, nil
}

// messageID names a call of the handler of a task: the receiver can tell by it that a message is repeated.
// Lengths stand before the ids, so that no two pairs give the same text.
func messageID(t *core.RunInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d:%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Occurrence.UnixMilli(), t.Call()))
	return "msg_" + hex.EncodeToString(sum[:16])
}

// questionID names a question of a gate. A run may ask about the same occurrence again, so it is another one for each claim: a
// receiver that ignores messages that it has seen still answers.
func questionID(t *core.RunInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Fence))
	return "gate_" + hex.EncodeToString(sum[:16])
}
