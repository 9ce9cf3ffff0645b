package codec

// A new task as it is stored.

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/internal/spread"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// uniqueID is the id made from a unique key.
func uniqueID(key string) string {
	sum := sha256.Sum256([]byte(key))
	return "unique-" + hex.EncodeToString(sum[:16])
}

// Prepare checks a task and turns it into a submission. The checks need no store.
func Prepare(t *model.NewTask, maxPayload int, origin *model.Origin) (store.Submission, error) {
	sub := store.Submission{Agent: t.Agent, ID: t.ID, Kind: t.Kind, Group: t.Group, Level: t.Level, Key: t.LimitKey, Conflict: t.OnConflict.Rule(), Recurs: t.Cron != "" || t.Every != 0}
	if t.UniqueKey != "" {
		sub.ID = uniqueID(t.UniqueKey)
	}
	if sub.ID == "" {
		sub.ID = check.NewID()
	}
	payload, err := t.PayloadJSON(maxPayload)
	if err != nil {
		return sub, err
	}
	if err := t.Validate(sub.ID); err != nil {
		return sub, err
	}
	switch {
	case t.Manual:
		// Its planned occurrence never comes, so each of its runs is one by hand, which no misfire puts off.
		sub.Due.At, sub.State = moment.Never, (&State{Nominal: moment.Never}).First()
	case !t.At.IsZero():
		sub.Due.At = max(moment.Of(t.At), 1)
	default:
		sub.Due.After = t.Delay
		if t.Every != 0 {
			sub.Due.After += spread.Jitter(t.Jitter, t.Agent, sub.ID, 0)
		}
	}
	b := bodyOf(t, payload, origin)
	if t.Restored() != nil {
		restore(t.Restored(), &sub, &b)
	}
	sub.Body = b.Encode()
	return sub, nil
}
