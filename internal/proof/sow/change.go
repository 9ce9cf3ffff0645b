package sow

// Changes: what becomes of the statement behind an anchor. Most need no text of it, so that they outlive renames.

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Change is what a fault makes of a statement.
type Change func(s statement) (string, error)

// statement is the text of one, with its line ends.
type statement struct {
	text string
	lua  bool
}

// Drop leaves the statement out.
func Drop(s statement) (string, error) {
	switch {
	case s.lua, strings.HasSuffix(strings.TrimSpace(s.text), ","):
		return "", nil
	case strings.Contains(header(s.text), ":=") && !strings.HasPrefix(strings.TrimSpace(s.text), "if ") && !strings.HasPrefix(strings.TrimSpace(s.text), "for "):
		return "", errors.New("a declaration cannot be dropped")
	}
	return "if false {\n" + s.text + "}\n", nil // what it uses stays used
}

// Twice repeats the statement.
func Twice(s statement) (string, error) { return s.text + s.text, nil }

// Always makes the condition true.
func Always(s statement) (string, error) {
	return s.condition(func(c string) (string, error) { return s.or("true", c), nil })
}

// Never makes the condition false.
func Never(s statement) (string, error) {
	return s.condition(func(c string) (string, error) { return s.and("false", c), nil })
}

// Negate turns the condition into its contrary.
func Negate(s statement) (string, error) {
	not := "!"
	if s.lua {
		not = "not "
	}
	return s.condition(func(c string) (string, error) { return not + "(" + c + ")", nil })
}

// And asks for more than the condition.
func And(more string) Change {
	return func(s statement) (string, error) {
		return s.condition(func(c string) (string, error) { return s.and("("+c+")", more), nil })
	}
}

// Or is content with something else than the condition.
func Or(other string) Change {
	return func(s statement) (string, error) {
		return s.condition(func(c string) (string, error) { return s.or("("+c+")", other), nil })
	}
}

// Without takes terms, counted from 1, out of a condition: those of its "or", or of its "and" if it has no "or".
func Without(terms ...int) Change {
	return func(s statement) (string, error) {
		return s.condition(func(c string) (string, error) {
			or, and := " || ", " && "
			if s.lua {
				or, and = " or ", " and "
			}
			by, without := or, func(term string) string { return "(" + s.and("false", term) + ")" }
			all := split(c, or)
			if len(all) == 1 {
				by, without = and, func(term string) string { return "(" + s.or("true", term) + ")" }
				all = split(c, and)
			}
			if len(all) == 1 || slices.Max(terms) > len(all) {
				return "", fmt.Errorf("%q has %d terms", c, len(all))
			}
			for _, n := range terms {
				all[n-1] = without(all[n-1])
			}
			return strings.Join(all, by), nil
		})
	}
}

// Swap writes something else in place of a text, which the statement has once in its header, or has once.
func Swap(old, instead string) Change {
	return func(s statement) (string, error) {
		if head := header(s.text); strings.Count(head, old) == 1 {
			return strings.Replace(head, old, instead, 1) + s.text[len(head):], nil
		}
		if n := strings.Count(s.text, old); n != 1 {
			return "", fmt.Errorf("the statement has %q %d times, and has to have it once", old, n)
		}
		return strings.Replace(s.text, old, instead, 1), nil
	}
}

// Before puts a statement in front of it.
func Before(text string) Change {
	return func(s statement) (string, error) { return text + "\n" + s.text, nil }
}

// After puts a statement behind it.
func After(text string) Change {
	return func(s statement) (string, error) { return s.text + text + "\n", nil }
}

// Inside puts a statement at the begin of its block.
func Inside(text string) Change {
	return func(s statement) (string, error) {
		head := header(s.text)
		return head + text + "\n" + s.text[len(head):], nil
	}
}

// Instead puts another statement in its place.
func Instead(text string) Change {
	return func(statement) (string, error) { return text + "\n", nil }
}

// Both makes two changes, one after the other.
func Both(first, second Change) Change {
	return func(s statement) (string, error) {
		text, err := first(s)
		if err != nil {
			return "", err
		}
		return second(statement{text, s.lua})
	}
}

func (s statement) and(a, b string) string {
	if s.lua {
		return a + " and (" + b + ")"
	}
	return a + " && (" + b + ")"
}

func (s statement) or(a, b string) string {
	if s.lua {
		return a + " or (" + b + ")"
	}
	return a + " || (" + b + ")"
}

// opening is the end of a line behind which a block begins.
var opening = regexp.MustCompile(`(?m)(\{|:|\bthen|\bdo)([ \t]*(//|--).*)?\n`)

// header is a statement up to its block; all of it if it has none.
func header(text string) string {
	if at := opening.FindStringIndex(text); at != nil {
		return text[:at[1]]
	}
	return text
}

// Where a statement has its condition, as its second group: an if, a case, a return, or what is assigned.
var conditions = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^(\s*(?:\} else )?(?:if|for) )(.+?)( \{(?:[ \t]*//[^\n]*)?\n.*)$`),
	regexp.MustCompile(`(?s)^(\s*case )([^\n]+?)(:(?:[ \t]*//[^\n]*)?\n.*)$`),
	regexp.MustCompile(`(?s)^(\s*return )(.+?)((?:[ \t]*//[^\n]*)?\n)$`),
	regexp.MustCompile(`(?s)^(\s*[^=\n]*[^=!<>\n] :?= )(.+?)((?:[ \t]*//[^\n]*)?\n)$`),
}

// The same in Lua.
var luaConditions = []*regexp.Regexp{
	regexp.MustCompile(`(?s)^(\s*(?:if|elseif|while) )(.+?)( (?:then|do)\b.*)$`),
	regexp.MustCompile(`(?s)^(\s*return )(.+?)((?:[ \t]*--[^\n]*)?\n)$`),
	regexp.MustCompile(`(?s)^(\s*[^=\n]*[^=~<>\n] = )(.+?)((?:[ \t]*--[^\n]*)?\n)$`),
}

// condition changes the condition of a statement.
func (s statement) condition(change func(c string) (string, error)) (string, error) {
	forms := conditions
	if s.lua {
		forms = luaConditions
	}
	for _, form := range forms {
		m := form.FindStringSubmatch(s.text)
		if m == nil {
			continue
		}
		before, c := m[1], m[2]
		if parts := split(c, "; "); !s.lua && len(parts) == 2 { // a statement comes before it
			before, c = before+parts[0]+"; ", parts[1]
		}
		changed, err := change(c)
		return before + changed + m[3], err
	}
	return "", errors.New("the statement has no condition")
}

// split is a text without its separators that are in no brackets and in no quotes.
func split(text, by string) (parts []string) {
	depth, quote, from := 0, byte(0), 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0:
			if c == '\\' && quote != '`' {
				i++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' || c == '`':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		case depth == 0 && strings.HasPrefix(text[i:], by):
			parts = append(parts, text[from:i])
			from = i + len(by)
			i = from - 1
		}
	}
	return append(parts, text[from:])
}
