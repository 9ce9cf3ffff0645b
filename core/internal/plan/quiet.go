package plan

// Quiet hours: what they do to a due time.

import (
	"github.com/seed-6f6f2c11/duly/core/internal/codec"
	"github.com/seed-6f6f2c11/duly/core/internal/record"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// PutOff records that a task that is due at a time is due later, as its agent has quiet hours then. The occurrence stays the same.
func PutOff(s *codec.State, b *codec.Body, base, until moment.Millis) {
	s.PutOff = &record.PutOff{From: base, To: until}
	if s.Nominal == 0 && b.Activity == nil { // that of an activity task is when its gate is asked
		s.Nominal = base
	}
}

// BaseOf is when a task is due, or would be without quiet hours.
func BaseOf(s *codec.State, due moment.Millis) moment.Millis {
	if s.PutOff != nil && s.PutOff.To == due {
		return s.PutOff.From
	}
	return due
}
