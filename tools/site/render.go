package main

// Rendering: Markdown to HTML, with links that lead to where pages and files are.

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	goldmarkhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// repository has the files that are no pages.
const repository = "https://github.com/seed-6f6f2c11/duly/blob/main/"

// site is a site in the making.
type site struct {
	from   string
	pages  []*page
	byPath map[string]*page // by their source
	assets map[string]bool  // files that pages show
}

// render is a page as HTML. Its error names each link that leads nowhere.
func (s *site) render(p *page) (string, error) {
	md := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()),
		goldmark.WithRendererOptions(goldmarkhtml.WithUnsafe())) // the documents are ours
	doc := md.Parser().Parse(text.NewReader(p.text), parser.WithContext(parser.NewContext(parser.WithIDs(&names{}))))
	var problems []error
	var contents []string
	err := ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = s.lead(p, string(n.Destination), false)
		case *ast.Image:
			n.Destination, err = s.lead(p, string(n.Destination), true)
		case *ast.Heading:
			if id, ok := n.AttributeString("id"); ok && n.Level == 2 {
				contents = append(contents, fmt.Sprintf(`<a href="#%s">%s</a>`, id, html.EscapeString(words(n, p.text))))
			}
		}
		problems = append(problems, err)
		return ast.WalkContinue, nil
	})
	problems = append(problems, err)
	var body bytes.Buffer
	problems = append(problems, md.Renderer().Render(&body, p.text, doc))
	return s.frame(p, anchored(body.String()), contents), errors.Join(problems...)
}

// words are the text of a node.
func words(n ast.Node, source []byte) string {
	var out strings.Builder
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if t, ok := c.(*ast.Text); ok {
			out.Write(t.Segment.Value(source))
			continue
		}
		out.WriteString(words(c, source))
	}
	return out.String()
}

// lead is where a link of a page leads on the site: to a page, to a picture that is copied, or to the repository.
func (s *site) lead(p *page, to string, picture bool) ([]byte, error) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") || strings.HasPrefix(to, "#") {
		return []byte(to), nil
	}
	file, anchor, _ := strings.Cut(to, "#")
	if anchor != "" {
		anchor = "#" + anchor
	}
	source := path.Join(path.Dir(p.source), file)
	info, err := os.Stat(filepath.Join(s.from, source))
	switch index := s.byPath[path.Join(source, "README.md")]; {
	case err != nil:
		return []byte(to), fmt.Errorf("%s: the link %s leads nowhere", p.source, to)
	case picture:
		s.assets[source] = true
		return []byte(relative(p, source)), nil
	case s.byPath[source] != nil:
		return []byte(relative(p, s.byPath[source].target) + anchor), nil
	case info.IsDir() && index != nil:
		return []byte(relative(p, index.target) + anchor), nil
	case info.IsDir() && s.within(source) != nil:
		return []byte(relative(p, s.within(source).target)), nil
	default:
		return []byte(repository + source + anchor), nil
	}
}

// within is the first page of a folder that has no index; the navigation shows the others.
func (s *site) within(folder string) *page {
	for _, p := range s.pages {
		if path.Dir(p.source) == folder {
			return p
		}
	}
	return nil
}

// relative is the way from a page to something of the site.
func relative(p *page, to string) string {
	return strings.Repeat("../", strings.Count(p.target, "/")) + to
}

// anchored gives each heading a link to itself, and each table a frame that scrolls.
func anchored(body string) string {
	body = regexp.MustCompile(`<h([2-6]) id="([^"]*)">(.*?)</h[2-6]>`).ReplaceAllString(body, `<h$1 id="$2">$3 <a class="self" href="#$2" aria-label="link to this section">#</a></h$1>`)
	body = strings.ReplaceAll(body, "<table>", `<div class="wide" tabindex="0"><table>`)
	return strings.ReplaceAll(body, "</table>", "</table></div>")
}

// names are the ids of the headings of a page, as GitHub makes them.
type names struct{ taken map[string]bool }

// Generate is the id of a heading. It has what [parser.IDs] asks for.
func (n *names) Generate(value []byte, _ ast.NodeKind) []byte {
	heading := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(strings.ToLower(strings.TrimSpace(string(value))), "$1")
	name := strings.ReplaceAll(regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(heading, ""), " ", "-")
	for i, first := 1, name; n.taken[name]; i++ {
		name = fmt.Sprintf("%s-%d", first, i)
	}
	n.Put([]byte(name))
	return []byte(name)
}

// Put takes a name.
func (n *names) Put(value []byte) {
	if n.taken == nil {
		n.taken = map[string]bool{}
	}
	n.taken[string(value)] = true
}
