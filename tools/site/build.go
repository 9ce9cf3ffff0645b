package main

// Building: which pages there are, where they go, and what is written.

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// page is a document and where it is written, as HTML and as it is; paths have slashes, and begin at the repository and at the site.
type page struct {
	source, target string
	group          string // of the navigation
	title          string
	text           []byte
}

// doors are the groups of the navigation in its order: the pages that come first in each, and the folders whose other pages follow by their
// titles. A reader enters by one of five; what is for those who work on duly itself is apart, behind them.
var doors = []struct {
	name    string
	first   []string
	folders []string
}{
	{"Start", []string{"README.md", "docs/start.md", "docs/tour.md", "docs/why.md", "docs/faq.md", "docs/coming-from/README.md"}, []string{"docs/coming-from"}},
	{"Guides", []string{
		"docs/handlers.md", "docs/workers.md", "docs/limits.md", "docs/budgets.md", "docs/signals.md", "docs/steps.md", "docs/callbacks.md",
		"docs/hooks.md", "docs/late.md", "docs/agents.md", "docs/mcp.md", "docs/phrases.md",
	}, nil},
	{"Concepts", []string{
		"docs/concepts.md", "docs/guarantees.md", "docs/batches.md", "docs/gates.md", "docs/exact.md", "docs/spawning.md", "docs/quotas.md", "docs/tenants.md", "docs/benchmarks.md",
	}, nil},
	{"Reference", []string{"docs/reference/cli.md", "docs/reference/file.md"}, []string{"docs/reference"}},
	{"Operate", []string{
		"docs/operations.md", "docs/console.md", "docs/alerts.md", "docs/hosts/daemon.md", "docs/hosts/http.md", "docs/hosts/cron.md", "docs/redis.md", "docs/folder.md", "docs/scale.md",
	}, []string{"docs/hosts", "docs", "sam"}},
	{developers, []string{"ARCHITECTURE.md", "CONTRIBUTING.md", "docs/extending.md", "docs/proof.md"}, []string{".", "docs/decisions"}},
}

// developers is the door of those who work on duly.
const developers = "Developers"

// build writes the site, and returns how many pages it has.
func build(from, to string) (int, error) {
	pages, err := collect(from)
	if err != nil {
		return 0, err
	}
	if err := replace(to); err != nil {
		return 0, err
	}
	s := &site{from: from, pages: pages, byPath: map[string]*page{}, assets: map[string]bool{}}
	for _, p := range pages {
		s.byPath[p.source] = p
	}
	var problems []error
	for _, p := range pages {
		html, err := s.render(p)
		problems = append(problems, err)
		problems = append(problems, write(filepath.Join(to, p.target), []byte(html)), write(filepath.Join(to, p.source), p.text))
	}
	problems = append(problems, write(filepath.Join(to, "llms.txt"), []byte(s.index())))
	text, err := os.ReadFile(filepath.Join(from, skill))
	if err == nil {
		problems = append(problems, write(filepath.Join(to, skill), text))
	}
	problems = append(problems, write(filepath.Join(to, "style.css"), []byte(stylesheet)), write(filepath.Join(to, "search.js"), []byte(script)),
		write(filepath.Join(to, "sections.js"), s.sections()))
	for asset := range s.assets {
		data, err := os.ReadFile(filepath.Join(from, asset))
		problems = append(problems, err, write(filepath.Join(to, asset), data))
	}
	return len(pages), errors.Join(problems...)
}

// skill is what an agent reads to work with duly. It is no page: what loads skills reads its head.
const skill = "docs/skill/SKILL.md"

// index lists all pages for models, as llmstxt.org has it: what duly is, and each page with its first sentence. What is for developers of duly comes last.
func (s *site) index() string {
	var out strings.Builder
	out.WriteString("# duly\n\n> " + s.pages[0].sentence() + "\n\nEach page is here as Markdown. For agents that use duly: [" + skill + "](" + skill + ").\n")
	for _, door := range doors {
		heading := door.name
		if door.name == developers {
			heading = "Optional"
		}
		out.WriteString("\n## " + heading + "\n\n")
		for _, p := range s.pages {
			if p.group == door.name {
				fmt.Fprintf(&out, "- [%s](%s)%s\n", p.title, p.source, strings.TrimSuffix(": "+p.sentence(), ": "+p.title))
			}
		}
	}
	return out.String()
}

// sentence is the first sentence of a page that is none of its headings, tables and pictures.
func (p *page) sentence() string {
	for paragraph := range strings.SplitSeq(string(p.text), "\n\n") {
		paragraph = strings.TrimSpace(paragraph)
		if paragraph == "" || strings.ContainsAny(paragraph[:1], "#|<![-") || strings.HasPrefix(paragraph, "```") {
			continue
		}
		text := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)|\*\*`).ReplaceAllString(strings.Join(strings.Fields(paragraph), " "), "$1")
		if first, _, more := strings.Cut(text, ". "); more {
			text = first + "."
		}
		return text
	}
	return p.title
}

// replace makes an empty folder, but never of one that was not written by this program.
func replace(to string) error {
	entries, err := os.ReadDir(to)
	if err == nil && len(entries) > 0 {
		if _, err := os.Stat(filepath.Join(to, "style.css")); err != nil {
			return fmt.Errorf("%s has files and is no site: name another folder with -to", to)
		}
	}
	return errors.Join(os.RemoveAll(to), os.MkdirAll(to, 0o755))
}

func write(file string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// collect reads the documents, in the order of the navigation.
func collect(from string) ([]*page, error) {
	sources := []string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "sam/README.md"}
	err := filepath.WalkDir(filepath.Join(from, "docs"), func(file string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(file) == ".md" && filepath.Base(file) != path.Base(skill) {
			var source string
			source, err = filepath.Rel(from, file)
			sources = append(sources, filepath.ToSlash(source))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var pages []*page
	for _, source := range sources {
		text, err := os.ReadFile(filepath.Join(from, source))
		if errors.Is(err, fs.ErrNotExist) { // a repository may have fewer
			continue
		} else if err != nil {
			return nil, err
		}
		pages = append(pages, &page{source: source, target: target(source), group: group(source), title: title(source, text), text: text})
	}
	slices.SortStableFunc(pages, func(a, b *page) int { return strings.Compare(order(a), order(b)) })
	return pages, nil
}

// target is where a page goes: a README is the index of its folder.
func target(source string) string {
	if path.Base(source) == "README.md" {
		return path.Join(path.Dir(source), "index.html")
	}
	return strings.TrimSuffix(source, ".md") + ".html"
}

// group is the door of a page: the first that names it, else the first whose folder it is in.
func group(source string) string {
	for _, d := range doors {
		if slices.Contains(d.first, source) {
			return d.name
		}
	}
	for _, d := range doors {
		if slices.Contains(d.folders, path.Dir(source)) {
			return d.name
		}
	}
	return developers
}

// order sorts pages within the navigation.
func order(p *page) string {
	for n, d := range doors {
		if d.name != p.group {
			continue
		}
		if i := slices.Index(d.first, p.source); i >= 0 {
			return fmt.Sprintf("%02d %02d", n, i)
		}
		if path.Dir(p.source) == "docs/decisions" {
			return fmt.Sprintf("%02d 99 ~%s", n, p.source) // by number, behind the others
		}
		return fmt.Sprintf("%02d 99 %s", n, strings.ToLower(p.title))
	}
	return "99"
}

// title is the first heading of a page.
func title(source string, text []byte) string {
	m := regexp.MustCompile(`(?m)^# +(.*)$`).FindSubmatch(text)
	if m == nil {
		return path.Base(source)
	}
	return strings.ReplaceAll(string(m[1]), "`", "")
}
