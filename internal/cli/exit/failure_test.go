package exit_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
)

func TestAVerbIsSaidOnce(t *testing.T) {
	t.Parallel()
	for why, line := range map[string]string{
		"submit: the store is full": "submit: the store is full; wait",
		"look: the store\nis away":  "submit: look: the store is away; wait",
	} {
		assert.EqualError(t, &exit.Failure{What: "submit", Why: errors.New(why), Todo: "wait"}, line)
	}
}
