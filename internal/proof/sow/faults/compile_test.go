package faults_test

// A fault that does not compile tries nothing.

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/luapack"
	"github.com/seed-6f6f2c11/duly/internal/proof/sow"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// built is a package as go list describes it.
type built struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// compiler checks the types of packages with a file in place of another.
type compiler struct {
	*testing.T

	fset   *token.FileSet
	by     types.Importer
	inDirs map[string]built
	parsed map[string]*ast.File // those that no fault has changed
}

// newCompiler compiles all that the packages in some folders import.
func newCompiler(t *testing.T, dirs []string) *compiler {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for _, dir := range dirs {
		args = append(args, "./"+dir)
	}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	c := &compiler{T: t, fset: token.NewFileSet(), inDirs: map[string]built{}, parsed: map[string]*ast.File{}}
	exports := map[string]string{}
	for decoder := json.NewDecoder(out); ; {
		var p built
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		c.inDirs[p.Dir], exports[p.ImportPath] = p, p.Export
	}
	require.NoError(t, cmd.Wait())
	c.by = importer.ForCompiler(c.fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	return c
}

// compiles checks a package, one file of it with another text.
func (c *compiler) compiles(f *sow.Fault, file, text string) {
	dir, err := filepath.Abs(filepath.Join(root, path.Dir(file)))
	require.NoError(c, err)
	p, known := c.inDirs[dir]
	require.True(c, known, dir)
	require.Contains(c, p.GoFiles, path.Base(file), "%s is not built here", file)
	var files []*ast.File
	for _, name := range p.GoFiles {
		var err error
		full := filepath.Join(dir, name)
		parsed := c.parsed[full]
		if name == path.Base(file) {
			parsed, err = parser.ParseFile(c.fset, full, text, parser.SkipObjectResolution)
		} else if parsed == nil {
			parsed, err = parser.ParseFile(c.fset, full, nil, parser.SkipObjectResolution)
			c.parsed[full] = parsed
		}
		if !assert.NoError(c, err, f.Name) {
			return
		}
		files = append(files, parsed)
	}
	config := types.Config{Importer: c.by, Error: func(err error) { assert.NoError(c, err, f.Name) }}
	_, _ = config.Check(p.ImportPath, c.fset, files, nil)
}

func TestFaultsInGoCompile(t *testing.T) {
	t.Parallel()
	tree := read(t)
	var dirs []string
	for _, file := range tree.Anchors() {
		if strings.HasSuffix(file, ".go") {
			dirs = append(dirs, path.Dir(file))
		}
	}
	slices.Sort(dirs)
	c := newCompiler(t, slices.Compact(dirs))
	for _, f := range all() {
		if tree.IsScript(f) {
			continue
		}
		text, err := tree.Patched(f)
		require.NoError(t, err)
		c.compiles(f, tree.File(f), text)
	}
}

func TestFaultsInScriptsCompile(t *testing.T) {
	t.Parallel()
	client, tree := redistest.Start(t).Client(t), read(t)
	for _, f := range all() {
		if !tree.IsScript(f) {
			continue
		}
		text, err := tree.Patched(f)
		require.NoError(t, err)
		assert.NoError(t, client.ScriptLoad(t.Context(), luapack.Bare(text, map[string]string{})).Err(), f.Name)
	}
}
