package main

// The frame of a page: head, navigation, contents, and the stylesheet of all.

import (
	_ "embed"
	"fmt"
	"html"
	"strings"
)

//go:embed style.css
var stylesheet string

// policy lets a page load its stylesheet, pictures and the search, and nothing else.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; script-src 'self'; base-uri 'none'; form-action 'none'"

// frame is a whole page around its body.
func (s *site) frame(p *page, body string, contents []string) string {
	var out strings.Builder
	name := html.EscapeString(p.title)
	if p.source != "README.md" {
		name += " · duly"
	}
	fmt.Fprintf(&out, `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="%s">
<title>%s</title>
<link rel="stylesheet" href="%s">
<script defer src="%[6]ssections.js"></script>
<script defer src="%[6]ssearch.js"></script>
</head>
<body>
<a class="skip" href="#content">To the content</a>
<header><a href="%[4]s">duly</a>%[5]s</header>
`, policy, name, relative(p, "style.css"), relative(p, "index.html"), searchBox(relative(p, "")), relative(p, ""))
	s.navigation(&out, p)
	out.WriteString(`<main id="content">` + "\n")
	if len(contents) > 2 {
		fmt.Fprintf(&out, "<nav class=\"contents\" aria-label=\"On this page\">\n%s\n</nav>\n", strings.Join(contents, "\n"))
	}
	out.WriteString(body)
	fmt.Fprintf(&out, "<footer><a href=\"%s%s\">The source of this page</a></footer>\n</main>\n</body>\n</html>\n", repository, p.source)
	return out.String()
}

// navigation lists all pages by their groups; that of the page is open.
func (s *site) navigation(out *strings.Builder, at *page) {
	out.WriteString("<nav class=\"all\" aria-label=\"All pages\">\n")
	for _, door := range doors {
		name, open := door.name, ""
		if name == at.group {
			open = " open"
		}
		fmt.Fprintf(out, "<details%s><summary>%s</summary><ul>\n", open, name)
		for _, p := range s.pages {
			if p.group != name {
				continue
			}
			current := ""
			if p == at {
				current = ` aria-current="page"`
			}
			fmt.Fprintf(out, "<li><a href=\"%s\"%s>%s</a></li>\n", relative(at, p.target), current, html.EscapeString(p.title))
		}
		out.WriteString("</ul></details>\n")
	}
	out.WriteString("</nav>\n")
}
