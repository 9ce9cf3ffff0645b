package house_test

// What exists: the files, targets, commands, flags, keys, variables, routes and identifiers that a document may name.

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// known is what exists in this repository, by what it is.
type known struct {
	targets  map[string]map[string]bool // of make, by folder
	makefile string                     // whose variables may be set
	flags    map[string]map[string]bool // by command of duly; those of all under ""
	keys     map[string]bool            // of duly.yaml
	words    map[string]bool            // in the strings of programs, scripts and templates
	exports  map[string]map[string]bool // by package; what a type has is "Type.Member"
	anywhere map[string]bool            // what some package exports, members and tests included
	routes   map[string][]string        // methods by path of the HTTP API
}

// adapterNames are the packages that documents call by another name, as programs that import them do.
var adapterNames = map[string]string{"adapters/http": "httpadapter", "adapters/lambda": "lambdaadapter", "adapters/otel": "oteladapter", "handlers/lambda": "lambdahandler"}

func look(t *testing.T) *known {
	t.Helper()
	k := &known{
		targets: map[string]map[string]bool{}, flags: map[string]map[string]bool{"": {}}, keys: map[string]bool{"agent": true},
		words: map[string]bool{}, exports: map[string]map[string]bool{}, anywhere: map[string]bool{}, routes: map[string][]string{},
	}
	k.lookAtMake(t)
	k.lookAtCommands(t)
	k.lookAtRoutes(t)
	k.lookAtSource(t)
	return k
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return string(text)
}

func (k *known) lookAtMake(t *testing.T) {
	t.Helper()
	for _, folder := range []string{".", "sam"} {
		text := read(t, filepath.Join(folder, "Makefile"))
		k.makefile += text
		k.targets[folder] = map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)^([a-zA-Z][\w-]*):`).FindAllStringSubmatch(text, -1) {
			k.targets[folder][m[1]] = true
		}
	}
}

// lookAtCommands asks the program itself.
func (k *known) lookAtCommands(t *testing.T) {
	t.Helper()
	program := theProgram(t)
	help := func(args ...string) string {
		out, err := exec.CommandContext(t.Context(), program, append(args, "--help")...).CombinedOutput()
		require.NoError(t, err, "%q: %s", args, out)
		return string(out)
	}
	listed := regexp.MustCompile(`(?m)^  ([a-z][a-z-]*) +[A-Z]`)
	add := func(name string) (text string) {
		k.flags[name] = map[string]bool{}
		text = help(strings.Fields(name)...)
		for _, flag := range regexp.MustCompile(`(?m)^ +(?:(-[a-z]), )?(--[a-z][a-z-]*)`).FindAllStringSubmatch(text, -1) {
			for _, one := range flag[1:] {
				k.flags[name][one], k.flags[""][one] = true, true
			}
		}
		return text
	}
	for _, m := range listed.FindAllStringSubmatch(help(), -1) {
		text := add(m[1])
		if _, within, some := strings.Cut(text, "\nAvailable Commands:\n"); some && m[1] != "completion" { // completion is cobra's
			for _, sub := range listed.FindAllStringSubmatch(within, -1) {
				add(m[1] + " " + sub[1])
			}
		}
	}
	require.Greater(t, len(k.flags), 25)
}

// lookAtRoutes reads the description of the API, which other tests compare with the server. What tasks and profiles have is there, too.
func (k *known) lookAtRoutes(t *testing.T) {
	t.Helper()
	var document struct {
		Paths      map[string]map[string]any
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	text := read(t, "adapters/http/openapi.json")
	require.NoError(t, json.Unmarshal([]byte(text), &document))
	for path, methods := range document.Paths {
		for method := range methods {
			k.routes[path] = append(k.routes[path], strings.ToUpper(method))
		}
	}
	for _, schema := range []string{"NewTask", "Profile", "QuietHours", "Quota"} { // the file has the same names
		for key := range document.Components.Schemas[schema].Properties {
			k.keys[key] = true
		}
	}
	require.True(t, k.keys["min_interval"] && k.keys["days"])
	k.addWords(text)
}

// addWords takes in the words of a text, so that a document can name them.
func (k *known) addWords(text string) {
	for _, word := range regexp.MustCompile(`\w+`).FindAllString(text, -1) {
		k.words[word] = true
	}
}

// lookAtSource reads all Go, and what else programs consist of.
func (k *known) lookAtSource(t *testing.T) {
	t.Helper()
	for _, pattern := range []string{"sam/template.yaml", "sam/Makefile", "Makefile", "scripts/*", "core/redisstore/scripts/*.lua", ".ci/run"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		require.NotEmpty(t, files, pattern)
		for _, file := range files {
			k.addWords(read(t, file))
		}
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(read(t, "deploy/prometheus/duly.rules.yml"), -1) {
		k.words[m[1]] = true
	}
	err := filepath.WalkDir(".", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "bin"):
			return filepath.SkipDir
		case entry.IsDir() || filepath.Ext(path) != ".go":
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err == nil {
			k.addFile(path, file)
		}
		return err
	})
	require.NoError(t, err)
	require.True(t, k.keys["pause_after_failures"] && k.keys["max_wait"] && k.keys["redis_ca"], "the keys of the file were not found")
}

func (k *known) addFile(path string, file *ast.File) {
	if strings.HasSuffix(path, "_test.go") {
		for _, decl := range file.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil {
				k.anywhere[f.Name.Name] = true
			}
		}
		return
	}
	folder := filepath.ToSlash(filepath.Dir(path))
	name := adapterNames[folder]
	if name == "" {
		name = file.Name.Name
	}
	exports := k.exports[name]
	if exports == nil {
		exports = map[string]bool{}
		k.exports[name] = exports
	}
	add := func(names ...string) {
		if whole, last := strings.Join(names, "."), names[len(names)-1]; ast.IsExported(last) || last == "*" {
			exports[whole], k.anywhere[whole], k.anywhere[last] = true, true, true
		}
	}
	for _, decl := range file.Decls {
		addDeclaration(decl, add)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BasicLit:
			k.addWords(n.Value)
		case *ast.CompositeLit:
			if typ, ok := n.Type.(*ast.MapType); ok && folder == "internal/dulyfile" {
				k.addKeys(typ, n.Elts)
			}
		}
		return true
	})
}

// addKeys takes in the keys of a map[string]reader, which is how internal/dulyfile says what an object of the file may have.
func (k *known) addKeys(typ *ast.MapType, elements []ast.Expr) {
	if value, ok := typ.Value.(*ast.Ident); !ok || value.Name != "reader" {
		return
	}
	for _, element := range elements {
		if pair, ok := element.(*ast.KeyValueExpr); ok {
			k.keys[strings.Trim(pair.Key.(*ast.BasicLit).Value, `"`)] = true
		}
	}
}

// addDeclaration adds what a declaration of a package exports: names, and for a type its fields and methods.
func addDeclaration(decl ast.Decl, add func(names ...string)) {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name.Name)
			return
		}
		receiver := d.Recv.List[0].Type
		if star, ok := receiver.(*ast.StarExpr); ok {
			receiver = star.X
		}
		switch generic := receiver.(type) {
		case *ast.IndexExpr:
			receiver = generic.X
		case *ast.IndexListExpr:
			receiver = generic.X
		}
		add(receiver.(*ast.Ident).Name, d.Name.Name)
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					add(name.Name)
				}
			case *ast.TypeSpec:
				add(s.Name.Name)
				addMembers(s, add)
			}
		}
	}
}

func addMembers(s *ast.TypeSpec, add func(names ...string)) {
	var members *ast.FieldList
	switch typ := s.Type.(type) {
	case *ast.StructType:
		members = typ.Fields
	case *ast.InterfaceType:
		members = typ.Methods
	case *ast.SelectorExpr, *ast.IndexExpr, *ast.IndexListExpr: // another's, whose members are not known here
		add(s.Name.Name, "*")
		return
	default:
		return
	}
	for _, member := range members.List {
		if len(member.Names) == 0 {
			add(s.Name.Name, "*")
		}
		for _, name := range member.Names {
			add(s.Name.Name, name.Name)
		}
	}
}

// keysOf are the keys of the objects in a piece of YAML, but for what stands in payloads, which are the user's own, and for names
// that the user chooses.
func keysOf(n *yaml.Node) []string {
	var out []string
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode {
			out = append(out, keysOf(child)...)
			continue
		}
		if i%2 == 1 {
			continue
		}
		out = append(out, child.Value)
		switch value := n.Content[i+1]; child.Value {
		case "payload", "info", "values", "headers", "headers_env", "only", "labels":
		case "handlers", "hooks":
			for j := 1; j < len(value.Content); j += 2 {
				out = append(out, keysOf(value.Content[j])...)
			}
		default:
			out = append(out, keysOf(value)...)
		}
	}
	return out
}
