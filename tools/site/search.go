package main

// The search: what the script of the pages looks through, which needs no server.

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// script finds sections by words. It works from a folder too, so that it loads what it looks through as a script.
//
//go:embed search.js
var script string

// searchBox is the field of the header. It is hidden until the script runs, as it does nothing without.
func searchBox(root string) string {
	return fmt.Sprintf(`<search id="search" data-root="%s" hidden><input type="search" placeholder="Search (press /)" aria-label="Search all pages" autocomplete="off"><ol aria-live="polite"></ol></search>`, root)
}

// sections are the parts of all pages but the decisions and the list of changes, as a script: each with the title of its page, its heading, its
// address, its words and its door.
func (s *site) sections() []byte {
	var all [][5]string
	for _, p := range s.pages {
		if p.source == "CHANGELOG.md" || strings.HasPrefix(p.source, "docs/decisions/") {
			continue
		}
		ids := &names{}
		heading, address, text := "", p.target, []string{}
		add := func() {
			if len(text) > 0 || heading != "" {
				all = append(all, [5]string{p.title, heading, address, strings.Join(text, " "), p.group})
			}
			text = nil
		}
		code := false
		for line := range strings.SplitSeq(string(p.text), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
				continue
			}
			mark, rest, isHeading := strings.Cut(line, " ")
			if code || !isHeading || strings.Trim(mark, "#") != "" || mark == "" {
				text = append(text, spoken(line))
				continue
			}
			add()
			id := string(ids.Generate([]byte(rest), 0))
			if heading = spoken(rest); len(mark) == 1 {
				heading, address = "", p.target
				continue
			}
			address = p.target + "#" + id
		}
		add()
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err) // they are strings
	}
	return append(append([]byte("const sections = "), data...), ";\n"...)
}

var (
	linked  = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	spacing = regexp.MustCompile(`\s+`)
	marks   = regexp.MustCompile("[`*|<>]|-{3,}")
)

// spoken is a line of Markdown without its marks.
func spoken(line string) string {
	return strings.TrimSpace(spacing.ReplaceAllString(marks.ReplaceAllString(linked.ReplaceAllString(line, "$1"), " "), " "))
}
