package pictures_test

import (
	"encoding/xml"
	"errors"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/seed-6f6f2c11/duly/internal/proof/pictures"
)

var update = flag.Bool("update", false, "draw the pictures instead of comparing them")

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Each picture is what the code does now, is small, and says in words what it shows.
func TestThePicturesFollowFromTheCode(t *testing.T) {
	t.Parallel()
	life, err := pictures.Life(statuses(t), changes(t))
	require.NoError(t, err)
	for name, drawn := range map[string]string{"life.svg": life, "pull.svg": pictures.Pull(steps(t)), "bounds.svg": pictures.Lines(lines(t)), "quiet.svg": quiet(t)} {
		file := filepath.Join("../../../docs/pictures", name)
		if *update {
			require.NoError(t, os.WriteFile(file, []byte(drawn), 0o600))
		}
		kept, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.True(t, string(kept) == drawn, "%s: make generate draws it; now it is\n%s", file, drawn)
		assert.Less(t, len(drawn), 8<<10, "%s is small", name)
		assert.NotContains(t, drawn, "<script")
		for _, part := range []string{`role="img"`, `aria-labelledby="t d"`, `<title id="t">`, `<desc id="d">`, "prefers-color-scheme:dark"} {
			assert.Contains(t, drawn, part, name)
		}
		assert.NotContains(t, drawn, `<desc id="d"></desc>`, name)
		assert.NoError(t, wellFormed(drawn), name)
	}
}

// What has no place in the picture of a life is an error: a new status, and a change that nobody has drawn.
func TestALifeMissesNothing(t *testing.T) {
	t.Parallel()
	_, err := pictures.Life([]string{"waiting", "asleep"}, nil)
	require.ErrorContains(t, err, "asleep")
	_, err = pictures.Life(nil, []pictures.Change{{From: "completed", To: "in_progress", By: "magic"}})
	require.ErrorContains(t, err, "magic")
}

// The stories have every status that there is, and each of them is entered and, but for waiting, left or ended.
func TestTheStoriesHaveEveryStatus(t *testing.T) {
	t.Parallel()
	entered := map[string]bool{}
	for _, c := range changes(t) {
		entered[c.To] = true
	}
	for _, status := range statuses(t) {
		assert.True(t, entered[status], "no story has a task that is %s", status)
	}
}

// statuses are the constants of store.Status, in the order of the code.
func statuses(t *testing.T) (out []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../../../core/store/status.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok {
			if typ, ok := spec.Type.(*ast.Ident); ok && typ.Name == "Status" {
				value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
				require.NoError(t, err)
				out = append(out, value)
			}
		}
		return true
	})
	require.Len(t, out, 5)
	return out
}

func wellFormed(drawn string) error {
	d := xml.NewDecoder(strings.NewReader(drawn))
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
