package model

// The answer of a gate.

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of what a gate answers.
const (
	MaxGateInput = 64 << 10 // bytes of JSON
	MaxGateTag   = 1 << 10  // bytes
)

// GateAnswer is what a gate says about a run.
type GateAnswer struct {
	// Open lets the run start. Otherwise the occurrence is skipped and recorded, and the gate is asked again later: see
	// [IdleBackoff].
	Open bool
	// Input is handed to the handler, by [core.RunInfo.GateInput]: JSON of at most MaxGateInput bytes. It is not stored: another
	// attempt asks the gate again.
	Input json.RawMessage
	// Tag is kept with the task and handed to the gate by [core.RunInfo.GateTag] at the next run, so that it can tell what has changed since:
	// at most MaxGateTag bytes, such as an ETag. The tag of an open gate is stored once the run has succeeded, so that nothing is
	// skipped whose run failed or crashed. An empty tag of a closed gate leaves the stored one unchanged.
	Tag string
}

// Check refuses an answer that cannot be handed on or stored. The input of a closed gate is ignored.
func (a *GateAnswer) Check() error {
	switch {
	case len(a.Tag) > MaxGateTag:
		return fmt.Errorf("the tag is %d bytes long: the limit is %d", len(a.Tag), MaxGateTag)
	case !a.Open || len(a.Input) == 0:
		return nil
	case len(a.Input) > MaxGateInput:
		return fmt.Errorf("the input is %d bytes long: the limit is %d", len(a.Input), MaxGateInput)
	case !utf8.Valid(a.Input) || !json.Valid(a.Input):
		return fmt.Errorf("the input must be JSON, not %.40q", a.Input)
	default:
		return nil
	}
}
