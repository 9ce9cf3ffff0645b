package reference

// What the source says: fields, constants and their comments.

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strconv"
	"strings"
	"time"
)

// source is a parsed file of the repository.
type source struct{ file *ast.File }

// parseSource parses a file with its comments.
func parseSource(name string) (source, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return source{}, fmt.Errorf("read the source: %w", err)
	}
	return source{file}, nil
}

// field is one of a struct: its name in JSON, its type there, whether it may be missing, and what its comment says.
type field struct {
	name, kind, comment string
	optional            bool
}

// fields are those of a struct that have a name in JSON.
func (s source) fields(typeName string) []field {
	var out []field
	ast.Inspect(s.file, func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != typeName {
			return true
		}
		of, _ := spec.Type.(*ast.StructType)
		for _, f := range of.Fields.List {
			if f.Tag == nil {
				continue
			}
			tag, _ := strconv.Unquote(f.Tag.Value)
			name, rest, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(tag, `json:"`), `"`), ",")
			out = append(out, field{name, jsonKind(f.Type), strings.TrimSpace(f.Comment.Text()), rest == "omitempty"})
		}
		return false
	})
	return out
}

// jsonKind is the type that a type of Go has in JSON.
func jsonKind(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		if id, ok := t.X.(*ast.Ident); ok && id.Name == "heard" {
			return "object"
		}
		return jsonKind(t.X)
	case *ast.ArrayType:
		return "array of strings"
	case *ast.MapType:
		return "object of strings"
	case *ast.SelectorExpr: // of another package: json.RawMessage, or a number with a name
		if t.Sel.Name == "RawMessage" {
			return "any JSON"
		}
		return "number"
	case *ast.Ident:
		return map[string]string{"string": "string", "bool": "boolean", "int": "number"}[t.Name]
	default:
		return ""
	}
}

// values are the constants of a file that have a value which is spelt out, with their comments.
func (s source) values() map[string]constant {
	out := map[string]constant{}
	for _, decl := range s.file.Decls {
		group, ok := decl.(*ast.GenDecl)
		if !ok || group.Tok != token.CONST {
			continue
		}
		for _, spec := range group.Specs {
			v, ok := spec.(*ast.ValueSpec)
			if !ok || len(v.Values) != 1 {
				continue
			}
			text := literal(v.Values[0])
			if text == "" {
				text = number(float64(evaluate(v.Values[0])))
			}
			out[v.Names[0].Name] = constant{v.Names[0].Name, text, strings.TrimSpace(v.Comment.Text())}
		}
	}
	return out
}

// span is a constant of a file that is a duration.
func (s source) span(name string) string {
	n, _ := strconv.ParseInt(s.values()[name].value, 10, 64)
	switch d := time.Duration(n); {
	case d%time.Hour == 0:
		return strconv.Itoa(int(d/time.Hour)) + "h"
	case d%time.Minute == 0:
		return strconv.Itoa(int(d/time.Minute)) + "m"
	default:
		return d.String()
	}
}

// units are the constants of package time.
var units = map[string]int64{"Millisecond": int64(time.Millisecond), "Second": int64(time.Second), "Minute": int64(time.Minute), "Hour": int64(time.Hour)}

// evaluate is the number that an expression of numbers and durations is; zero for any other.
func evaluate(value ast.Expr) int64 {
	switch v := value.(type) {
	case *ast.BasicLit:
		n, _ := strconv.ParseInt(strings.ReplaceAll(v.Value, "_", ""), 0, 64)
		return n
	case *ast.SelectorExpr:
		return units[v.Sel.Name]
	case *ast.BinaryExpr:
		a, b := evaluate(v.X), evaluate(v.Y)
		switch v.Op {
		case token.MUL:
			return a * b
		case token.SHL:
			return a << b
		default:
			return 0
		}
	default:
		return 0
	}
}
