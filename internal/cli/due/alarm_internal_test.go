package due

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// What nobody takes is asked about less and less often, and what is due later once it should have begun.
func TestWhenToLookForAlarmsThatHaveNotRung(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_900_000_000, 0)
	var u unrung
	assert.Equal(t, bookEvery, u.after(time.Time{}, now).Sub(now), "nothing is due")
	assert.Equal(t, 5*time.Second+bookUnrung, u.after(now.Add(5*time.Second), now).Sub(now))
	assert.Equal(t, bookEvery, u.after(now.Add(time.Hour), now).Sub(now))
	past := now.Add(-time.Second)
	for _, want := range []time.Duration{bookUnrung, 2 * bookUnrung, 4 * bookUnrung, 8 * bookUnrung, bookEvery, bookEvery} {
		assert.Equal(t, want, u.after(past, now).Sub(now))
	}
	assert.Equal(t, bookUnrung, u.after(now, now).Sub(now), "something else")
}
