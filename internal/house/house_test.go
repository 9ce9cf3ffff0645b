package house_test

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The figures of the house: how much of it there is in one place. What is beyond a bound today is named with its figure, which may only fall:
// whoever makes one smaller writes the smaller figure here.

// Bounds of everything that is not named.
const (
	mostFiles    = 40  // of a package, tests left out
	mostNames    = 200 // exported by a package
	mostMethods  = 40  // of a type
	mostExported = 25  // of them, exported
	mostLines    = 400 // of code in a file
	mostFunction = 60  // lines of a function
	mostFields   = 40  // of a struct
)

var (
	filesBeyond   = map[string]int{"core": 30}
	namesBeyond   = map[string]int{"core/store": 150} // the contract of stores is to be read whole: no more than it has
	methodsBeyond = map[string]int{
		"adapters/http.api":                 77,
		"core/filestore.Store":              61,
		"core/memstore.Store":               62,
		"core/memstore.partition":           79,
		"core/redisstore.Store":             80,
		"core/storetest/spy.Store":          43,
		"internal/proof/sim/world.World":    60,
		"internal/proof/sim/world.bus":      41,
		"internal/proof/sim/stores.outside": 42,
	}
	exportedBeyond = map[string]int{
		"adapters/http/metrics.countedStore": 38,
		"core/filestore.Store":               50,
		"core/memstore.Store":                48,
		"core/redisstore.Store":              28,
		"core/storetest/spy.Store":           43,
		"internal/proof/sim/world.bus":       41,
		"internal/proof/sim/stores.outside":  41,
	}
	fieldsBeyond = map[string]int{
		"core.pull":                           19, // it was 32 once, all in one list
		"core/model.NewTask":                  44, // what users write: a part of its own would have to be named in each literal
		"core/model.trackedJSON":              42,
		"core/redisstore/internal/script.All": 41, // one for each script
		"internal/proof/sim/world.World":      52,
	}
)

// generated is what a file begins with that nobody writes.
var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

// codeLines are the lines of a file that are neither empty nor a comment.
func codeLines(data []byte) (n int) {
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 && !bytes.HasPrefix(line, []byte("//")) {
			n++
		}
	}
	return n
}

// room is what a package has.
type room struct {
	files, names              int
	methods, exported, fields map[string]int
}

// rooms reads all packages, their files and functions. Generated files and tests are left out, and modules of their own.
func rooms(t *testing.T) map[string]*room {
	t.Helper()
	all := map[string]*room{}
	fset := token.NewFileSet()
	require.NoError(t, filepath.WalkDir(".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			_, own := os.Stat(filepath.Join(path, "go.mod"))
			if path != "." && (own == nil || strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil || generated.Match(data) {
			return err
		}
		dir := filepath.ToSlash(filepath.Dir(path))
		if all[dir] == nil {
			all[dir] = &room{methods: map[string]int{}, exported: map[string]int{}, fields: map[string]int{}}
		}
		name := filepath.ToSlash(path)
		lines := codeLines(data)
		assert.LessOrEqual(t, lines, mostLines, "%s has %d lines: make it two files, of which each can be said what it is for in a sentence", name, lines)
		file, err := parser.ParseFile(fset, path, data, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		all[dir].add(t, fset, name, file)
		return nil
	}))
	return all
}

// add counts a file.
func (r *room) add(t *testing.T, fset *token.FileSet, path string, file *ast.File) {
	t.Helper()
	r.files++
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			lines := fset.Position(d.End()).Line - fset.Position(d.Pos()).Line + 1
			assert.LessOrEqual(t, lines, mostFunction, "%s: %s has %d lines", path, d.Name.Name, lines)
			if d.Recv == nil {
				r.name(d.Name)
				continue
			}
			of := receiver(d.Recv.List[0].Type)
			if r.methods[of]++; d.Name.IsExported() {
				r.exported[of]++
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					r.name(s.Name)
					if of, ok := s.Type.(*ast.StructType); ok {
						r.fields[s.Name.Name] = fieldsOf(of)
					}
				case *ast.ValueSpec:
					for _, name := range s.Names {
						r.name(name)
					}
				}
			}
		}
	}
}

// fieldsOf counts the fields of a struct; one that is embedded is one.
func fieldsOf(of *ast.StructType) (n int) {
	for _, field := range of.Fields.List {
		n += max(len(field.Names), 1)
	}
	return n
}

func (r *room) name(name *ast.Ident) {
	if name.IsExported() {
		r.names++
	}
}

// receiver is the name of a type without its star and parameters.
func receiver(x ast.Expr) string {
	for {
		switch of := x.(type) {
		case *ast.StarExpr:
			x = of.X
		case *ast.IndexExpr:
			x = of.X
		case *ast.IndexListExpr:
			x = of.X
		case *ast.Ident:
			return of.Name
		default:
			return ""
		}
	}
}

// Nothing grows beyond its bound, and what is beyond it does not grow.
func TestTheHouseDoesNotGrow(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	holds := func(what, name string, n, bound int, beyond map[string]int) {
		t.Helper()
		seen[what+name] = true
		if was, known := beyond[name]; known {
			assert.Equal(t, was, n, "%s of %s: write the figure here if it has fallen, and find another place if it has grown", what, name)
			return
		}
		assert.LessOrEqual(t, n, bound, "%s of %s", what, name)
	}
	for dir, r := range rooms(t) {
		holds("files", dir, r.files, mostFiles, filesBeyond)
		holds("names", dir, r.names, mostNames, namesBeyond)
		for of, n := range r.methods {
			holds("methods", dir+"."+of, n, mostMethods, methodsBeyond)
			holds("exported", dir+"."+of, r.exported[of], mostExported, exportedBeyond)
		}
		for of, n := range r.fields {
			holds("fields", dir+"."+of, n, mostFields, fieldsBeyond)
		}
	}
	for what, beyond := range map[string]map[string]int{"files": filesBeyond, "names": namesBeyond, "methods": methodsBeyond, "exported": exportedBeyond, "fields": fieldsBeyond} {
		for name := range beyond {
			assert.True(t, seen[what+name], "%s of %s: there is no such thing any more", what, name)
		}
	}
}
