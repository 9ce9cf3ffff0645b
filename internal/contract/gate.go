package contract

// Gates: what a program or a server gets that is asked whether there is anything to do, and what its answer means.

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// GateTimeout is how long a gate may take by default.
// It is asked far more often than there is work, so it has to be quick.
const GateTimeout = 30 * time.Second

// EncodeGate is the JSON of a run whose gate is asked. It fails as Encode does.
func EncodeGate(t *core.RunInfo) ([]byte, error) {
	return Encode(&core.Task[json.RawMessage]{Payload: t.RawPayload(), RunInfo: t})
}

// Answer is what a gate says by its text: there is something to do, and the text goes to the handler, JSON unchanged and any other text as a
// string, unless it declines. The text has at most one byte more than core.MaxGateInput.
func Answer(text []byte) (core.GateAnswer, error) {
	text = bytes.TrimSpace(text)
	switch {
	case len(text) > model.MaxGateInput:
		return core.GateAnswer{}, fmt.Errorf("the answer is larger than the limit of %d bytes: let the handler fetch it", model.MaxGateInput)
	case Declines(text):
		return core.GateAnswer{}, nil
	case len(text) == 0 || IsJSON(text):
		return core.GateAnswer{Open: true, Input: text}, nil
	}
	quoted, err := json.Marshal(Text(text))
	return core.GateAnswer{Open: true, Input: quoted}, err
}

// Declines reports whether a text is a JSON object that says that there is nothing to do.
// Only false counts: what is missing, null or a string is no answer, and a run too many does less harm than one too few.
func Declines(text []byte) bool {
	var said struct {
		Wake      *bool `json:"wake"`
		WakeAgent *bool `json:"wakeAgent"`
	}
	return json.Unmarshal(text, &said) == nil && (said.Wake != nil && !*said.Wake || said.WakeAgent != nil && !*said.WakeAgent)
}
