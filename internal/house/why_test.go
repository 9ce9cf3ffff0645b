package house_test

// docs/why.md: faults that are known, each with who has reported it, and the tests that show that duly does not have it.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// missingTests are the tests that a text names, also one of a table of tests, and that do not exist; and how many it names.
func missingTests(t *testing.T, text string) (missing []string, named int) {
	t.Helper()
	var tests strings.Builder
	for _, pattern := range []string{"core/*_test.go", "core/*/*.go", "core/*/*/*.go", "adapters/*/*_test.go", "handlers/*/*_test.go", "internal/*/*_test.go", "internal/proof/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, file := range files {
			source, err := os.ReadFile(file)
			require.NoError(t, err)
			tests.Write(source)
		}
	}
	names := regexp.MustCompile("`(Test[A-Za-z]+)(?:/([a-z0-9 -]+))?`").FindAllStringSubmatch(text, -1)
	for _, name := range names {
		if !strings.Contains(tests.String(), "func "+name[1]+"(") || name[2] != "" && !strings.Contains(tests.String(), `{"`+name[2]+`", `) {
			missing = append(missing, name[0])
		}
	}
	return missing, len(names)
}

// Each fault has somebody who has reported it, in public, and tests that exist.
func TestTheTestsOfWhyExist(t *testing.T) {
	t.Parallel()
	rows := 0
	for line := range strings.SplitSeq(read(t, "docs/why.md"), "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if !strings.HasPrefix(line, "| ") || cells[0] == "fault" {
			continue
		}
		rows++
		require.Len(t, cells, 4, line)
		assert.Contains(t, cells[1], "](https://", "%s: nobody has reported it", cells[0])
		missing, named := missingTests(t, cells[3])
		assert.Empty(t, missing, cells[0])
		assert.Positive(t, named, "%s: no test shows it", cells[0])
	}
	assert.GreaterOrEqual(t, rows, 15)
}

// A test that does not exist, and a case that its table does not have, are missed.
func TestMissingTests(t *testing.T) {
	t.Parallel()
	missing, named := missingTests(t, "`TestNowhere`, `TestContract/no such case`, `TestContract/fences grow`, `TestCrashes`")
	assert.Equal(t, []string{"`TestNowhere`", "`TestContract/no such case`"}, missing)
	assert.Equal(t, 4, named)
}
