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

// questionID names a question of a gate. A run may ask about the same occurrence again, so it is another one for each claim: a
// receiver that ignores messages that it has seen still answers.
func questionID(t *core.RunInfo) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%d", len(t.Agent), t.Agent, len(t.ID), t.ID, t.Fence))
	return "gate_" + hex.EncodeToString(sum[:16])
}
