package table

// Terminals: whether there is one, how wide it is, and what fits.

import (
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// Terminal reports whether w is one that a line can be rewritten on.
func Terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(f.Fd()))
}

// Colourful reports whether w is a terminal whose user wants colours.
// NO_COLOR and TERM=dumb are the two customs by which a user turns colours off.
func Colourful(w io.Writer) bool { return os.Getenv("NO_COLOR") == "" && Terminal(w) }

// Size is how many columns and lines a terminal has; COLUMNS goes before what it says itself. Both are zero if w is none.
func Size(w io.Writer) (columns, lines int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return 0, 0
	}
	columns, lines, err := term.GetSize(int(f.Fd()))
	if err != nil {
		columns, lines = 0, 0
	}
	if n, err := strconv.Atoi(strings.TrimSpace(os.Getenv("COLUMNS"))); err == nil && n > 0 {
		columns = n
	}
	return columns, lines
}

// Width is how many columns a text takes: two for each character of East Asian scripts, none for an accent that follows its letter.
func Width(text string) int { return uniseg.StringWidth(text) }

// more marks where text was cut.
const more = "…"

// Cut is a text without what does not fit at its end.
func Cut(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	return head(text, width-1) + more
}

// Middle is a text without what does not fit in its middle.
func Middle(text string, width int) string {
	if Width(text) <= width {
		return text
	}
	tail := max(width-1, 0) / 2
	return head(text, width-1-tail) + more + last(text, tail)
}

// head are the characters at the beginning of a text that fit.
func head(text string, width int) string {
	end, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if width -= w; width < 0 {
			break
		}
		end += len(cluster)
	}
	return text[:end]
}

// last are the characters at the end of a text that fit.
func last(text string, width int) string {
	total, state := Width(text), -1
	rest := text
	for total > width && rest != "" {
		var w int
		_, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		total -= w
	}
	return rest
}

// Wrap breaks a text between words where it does not fit; each line but the first has an indent. A word that is longer than a line stays whole, and a width of
// zero is any.
func Wrap(text string, width int, indent string) string {
	if width <= 0 || Width(text) <= width {
		return text
	}
	var lines []string
	line := ""
	for i, word := range strings.Split(text, " ") {
		next := line + " " + word
		if i == 0 {
			next = word
		}
		if Width(next) <= width || strings.TrimSpace(line) == "" {
			line = next
			continue
		}
		lines = append(lines, strings.TrimRight(line, " "))
		line = indent + word
	}
	return strings.Join(append(lines, line), "\n")
}

// Redraw is a page in place of the one before, no longer than a terminal has lines.
func Redraw(page string, lines int) string {
	all := strings.SplitAfter(page, "\n")
	if lines > 1 && len(all) > lines {
		all = append(all[:lines-2:lines-2], more+"\n")
	}
	// Each line is cleared after its end, and so is the rest below the last: clearing all first would flicker.
	var b strings.Builder
	b.WriteString("\x1b[H")
	for _, line := range all {
		if text, ok := strings.CutSuffix(line, "\n"); ok {
			b.WriteString(text + "\x1b[K\n")
		} else {
			b.WriteString(line)
		}
	}
	b.WriteString("\x1b[J")
	return b.String()
}
