package codec

// The delivery of a callback, by its name.

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/seed-6f6f2c11/duly/core/internal/check"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// CallbackID is the id of the delivery that follows an end of a task: a different one for each end, and the same if that end is tried again. by
// distinguishes this end from others.
func CallbackID(id, by string) string {
	const most = check.MaxIDLen - len("callback::") - 16
	sum := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(id), id, by))
	if len(id) > most {
		id = strings.ToValidUTF8(id[:most], "")
	}
	return "callback:" + id + ":" + hex.EncodeToString(sum[:8])
}

// Labelled adds what a finished task does not keep of its body and its receiver may identify it by, and removes what is large or secret.
func Labelled(info *model.TaskInfo, b *Body) {
	info.TraceID, info.Traceparent, info.SessionID = b.TraceID, b.Traceparent, b.SessionID
	info.UserID, info.Labels, info.Info, info.Tags, info.Parent = b.UserID, b.AllLabels(), b.Info, b.Tags, b.Parent
	info.Payload, info.Checkpoint, info.Callback, info.OnLate = nil, nil, "", ""
}
