package dulyfile_test

// The schema of the file, held against files: those of the documents and the examples, those of tests, and mistakes.

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/adapters/memosstream"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/redisstore"
	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// structural is what the reader says about mistakes that can be seen without knowing anything else.
var structural = regexp.MustCompile(`unknown key|is not a field|must be an? (array|string|object|whole number|number$|duration)|must be true or false` +
	`|must not be (empty|negative, not -\d+$)|must be longer than|must have exactly one|must be at least \d+,|must be 1, 2 or 3|unknown scope|must have (scopes|a type|url|allow|secret_env|stream|token_env)`)

// What the reader refuses for its structure the schema refuses too.
func TestTheSchemaRefusesMistakes(t *testing.T) {
	t.Parallel()
	d := schemaOf(t)
	refused := 0
	for text := range mistakes {
		err := parse(t, text)
		require.Error(t, err)
		if !structural.MatchString(err.Error()) || strings.Contains(err.Error(), "given twice") {
			continue
		}
		refused++
		assert.Error(t, d.check(t, text), "%s\n%s", text, err)
	}
	assert.Greater(t, refused, 90)
}

// otherFiles are the beginnings of YAML in documents that is no file of duly.
var otherFiles = regexp.MustCompile(`(?m)^(groups|apiVersion|services|jobs|on):`)

// Each file of duly in the documents and the examples is one for the schema.
func TestTheSchemaTakesTheFilesOfTheDocuments(t *testing.T) {
	t.Parallel()
	d := schemaOf(t)
	block := regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```")
	files := 0
	err := filepath.WalkDir("../..", func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && (strings.HasPrefix(e.Name(), ".") && e.Name() != ".." || e.Name() == "bin" || e.Name() == "node_modules"):
			return fs.SkipDir
		case e.Name() == "CHANGELOG.md":
			return nil
		}
		var texts []string
		text, err := os.ReadFile(path)
		switch {
		case e.IsDir():
			return nil
		case e.Name() == "duly.yaml":
			texts = []string{string(text)}
		case filepath.Ext(path) == ".md":
			for _, m := range block.FindAllStringSubmatch(string(text), -1) {
				texts = append(texts, m[1])
			}
		}
		for _, text := range texts {
			if !otherFiles.MatchString(text) {
				files++
				assert.NoError(t, d.check(t, text), "%s:\n%s", path, text)
			}
		}
		return err
	})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, files, 20)
}

// Whatever the reader takes of the texts in the tests of the file and of the command line, the schema takes.
func TestTheSchemaTakesWhatTheReaderTakes(t *testing.T) { //nolint:paralleltest // it sets variables
	secrets(t)
	d := schemaOf(t)
	taken := 0
	for _, pattern := range []string{"*_test.go", "../cli/*_test.go"} {
		names, err := filepath.Glob(pattern)
		require.NoError(t, err)
		for _, name := range names {
			parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			ast.Inspect(parsed, func(n ast.Node) bool {
				literal, ok := n.(*ast.BasicLit)
				if !ok || literal.Kind != token.STRING {
					return true
				}
				text, _ := strconv.Unquote(literal.Value)
				if !strings.Contains(text, ":") || parse(t, text) != nil {
					return true
				}
				taken++
				assert.NoError(t, d.check(t, text), "%s:\n%s", name, text)
				return true
			})
		}
	}
	assert.Greater(t, taken, 50)
}

// The defaults are those of the code.
func TestTheSchemaHasTheDefaultsOfTheCode(t *testing.T) {
	t.Parallel()
	d := schemaOf(t)
	want := map[string]any{
		".prefix": redisstore.DefaultPrefix, ".retention": redisstore.DefaultRetention, ".kept": redisstore.DefaultKept, ".kept_bytes": redisstore.DefaultKeptBytes,
		".max_tasks": redisstore.DefaultMaxTasks, ".max_bytes": redisstore.DefaultMaxBytes, ".concurrency": model.DefaultConcurrency, ".ahead": core.DefaultAhead,
		".max_crashes": model.DefaultMaxCrashes, ".max_depth": model.DefaultMaxDepth, ".max_spawned": model.DefaultMaxSpawned, ".lease": model.DefaultLease, ".store_share": httpadapter.DefaultShare, ".serial": string(core.SerialTask), ".zone": "UTC",
		"handler.level": int(core.LevelLow), "handler.backoff": model.DefaultBackoff, "handler.max_backoff": model.DefaultMaxBackoff,
		"handler.max_retry_afters": model.DefaultMaxRetryAfters, "handler.pause_after_failures": model.DefaultPauseAfter, "handler.grace": model.DefaultGrace,
		"handler.spread": model.DefaultSpread, "handler.catch_up": model.DefaultCatchUp, "handler.idle_factor": model.DefaultIdleFactor, "handler.idle_max": model.DefaultMaxIdle,
		"activity.max_failures": model.DefaultMaxFailures, "activity.level": int(core.LevelLow), "activity.dimensions": 3, "gate.timeout": 30 * time.Second,
		"stream.prefix": memosstream.DefaultPrefix,
	}
	for at, value := range want {
		name, key, _ := strings.Cut(at, ".")
		properties, _ := d.part(name)["properties"].(object)
		is, _ := properties[key].(object)
		got := is["default"]
		switch value := value.(type) {
		case time.Duration:
			text, _ := got.(string)
			span, err := schedule.ParseDuration(text)
			require.NoError(t, err, at)
			assert.Equal(t, value, span, at)
		case int:
			assert.InDelta(t, value, got, 0, at)
		default:
			assert.Equal(t, value, got, at)
		}
	}
}
