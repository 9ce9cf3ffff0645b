package pictures

// SVG: boxes, arrows and texts, light and dark, with a title and a description for whoever does not see them.

import (
	"fmt"
	"html"
	"strings"
)

// style has two sets of colours: an image follows the scheme of its reader, not that of the page. The ground is drawn, so that a page of
// the other scheme leaves it readable.
const style = `<style>text{font:14px system-ui,sans-serif;fill:#1f2328}.s{font-size:12px;fill:#57606a}.g{fill:#fff}.b{fill:#f6f8fa;stroke:#57606a;stroke-width:1.5}` +
	`.e{fill:#ddf4ff;stroke:#0969da;stroke-width:1.5}.l{fill:none;stroke:#57606a;stroke-width:1.5}.q{fill:#d8dee4}.d{fill:#0969da}.a{fill:#57606a}` +
	`@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.g{fill:#0d1117}.b{fill:#161b22;stroke:#9198a1}.e{fill:#0c2d6b;stroke:#4493f8}` +
	`.l{stroke:#9198a1}.q{fill:#30363d}.d{fill:#4493f8}.a{fill:#9198a1}}</style>` +
	`<defs><marker id="m" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="a" d="M0 0 8 4 0 8z"/></marker></defs>`

// sheet is a picture in the making.
type sheet struct {
	strings.Builder

	width, height int
}

// newSheet begins a picture that says in words what it shows.
func newSheet(width, height int, title, description string) *sheet {
	s := &sheet{width: width, height: height}
	s.add(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-labelledby="t d">`+"\n", width, height, width, height)
	s.add(`<title id="t">%s</title>`+"\n"+`<desc id="d">%s</desc>`+"\n", html.EscapeString(title), html.EscapeString(description))
	s.add("%s\n"+`<rect class="g" width="%d" height="%d"/>`+"\n", style, width, height)
	return s
}

// add writes a piece, which cannot fail in memory.
func (s *sheet) add(format string, args ...any) { _, _ = fmt.Fprintf(s, format, args...) }

// done is the picture.
func (s *sheet) done() string { return s.String() + "</svg>\n" }

// box is a rectangle with a text in its middle.
func (s *sheet) box(class string, x, y, width, height int, text string) {
	s.add(`<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="6"/>`+"\n", class, x, y, width, height)
	s.text("", "middle", x+width/2, y+height/2+5, text)
}

// text is one line; class "s" is small.
func (s *sheet) text(class, anchor string, x, y int, text string) {
	if text == "" {
		return
	}
	if class != "" {
		class = fmt.Sprintf(` class="%s"`, class)
	}
	s.add(`<text%s x="%d" y="%d" text-anchor="%s">%s</text>`+"\n", class, x, y, anchor, html.EscapeString(text))
}

// texts are small lines, one below the other.
func (s *sheet) texts(anchor string, x, y int, lines ...string) {
	for i, line := range lines {
		s.text("s", anchor, x, y+16*i, line)
	}
}

// arrow is a path with a head at its end.
func (s *sheet) arrow(path string) {
	s.add(`<path class="l" marker-end="url(#m)" d="%s"/>`+"\n", path)
}

// dot is a point in time.
func (s *sheet) dot(x, y int) { s.add(`<circle class="d" cx="%d" cy="%d" r="5"/>`+"\n", x, y) }
