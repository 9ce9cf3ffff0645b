package doctor

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/core/inspect"
)

// An offset above half a second is told, and the time that the answer took is none.
func TestDoctorTellsAnOffsetOfTheClocks(t *testing.T) {
	t.Parallel()
	asked := time.Date(2026, 11, 24, 9, 0, 0, 0, time.UTC)
	answered := asked.Add(2 * time.Second)
	for off, want := range map[time.Duration]inspect.Severity{
		0: inspect.SeverityOK, 2 * time.Second: inspect.SeverityOK, -500 * time.Millisecond: inspect.SeverityOK, 2500 * time.Millisecond: inspect.SeverityOK,
		-600 * time.Millisecond: inspect.SeverityWarning, 2600 * time.Millisecond: inspect.SeverityWarning,
	} {
		assert.Equal(t, want, checkClock(asked.Add(off), asked, answered).Severity, off)
	}
	assert.Contains(t, checkClock(asked.Add(-3*time.Second), asked, answered).Message, "differ by 3s")
}
