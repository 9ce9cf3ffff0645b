package command

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A table with codes of different lengths would not have straight columns.
func TestColoursAreAsLongAsTheDefault(t *testing.T) {
	t.Parallel()
	assert.NotEmpty(t, colours)
	for text, code := range colours {
		assert.Len(t, code, len("39"), text)
	}
}
