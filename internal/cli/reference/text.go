package reference

// Pieces of Markdown that all pages have.

import "strings"

// generated opens each page.
const generated = "<!-- Written by make generate. -->\n"

// cell is a text in a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(strings.TrimSpace(text))
}

// sentence ends a text with a full stop.
func sentence(text string) string {
	if text = strings.TrimSpace(text); text != "" && !strings.HasSuffix(text, ".") {
		text += "."
	}
	return text
}
