package main

import (
	"encoding/json"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// written is the site of the repository: its pages by their path, and all its files.
func written(t *testing.T) (dir string, pages map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "site")
	n, err := build("../..", dir)
	require.NoError(t, err)
	pages = map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		require.NoError(t, err)
		if filepath.Ext(path) == ".html" {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			name, err := filepath.Rel(dir, path)
			require.NoError(t, err)
			pages[filepath.ToSlash(name)] = string(text)
		}
		return nil
	}))
	require.Len(t, pages, n)
	require.Greater(t, n, 80)
	return dir, pages
}

var (
	referred = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	body     = regexp.MustCompile(`(?s)<main id="content">.*</main>`)
)

// leads is where the links of a page lead within the site, with anchors.
func leads(page, text string) (out []string) {
	for _, m := range referred.FindAllStringSubmatch(text, -1) {
		to := html.UnescapeString(m[1])
		if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
			continue
		}
		if strings.HasPrefix(to, "#") {
			out = append(out, page+to)
			continue
		}
		out = append(out, filepath.ToSlash(filepath.Join(filepath.Dir(page), to)))
	}
	return out
}

// Each link of the site leads to a file of it, and to something there that has that name.
func TestEachLinkLeadsSomewhere(t *testing.T) {
	t.Parallel()
	dir, pages := written(t)
	looked := 0
	for page, text := range pages {
		for _, to := range leads(page, text) {
			looked++
			file, anchor, _ := strings.Cut(to, "#")
			if _, err := os.Stat(filepath.Join(dir, file)); !assert.NoError(t, err, "%s leads to %s", page, to) || anchor == "" {
				continue
			}
			assert.True(t, strings.Contains(pages[file], ` id="`+html.EscapeString(anchor)+`"`), "%s leads to %s", page, to)
		}
	}
	assert.Greater(t, looked, 5000)
}

// Every page is found from the first one by the links of texts alone; by the navigation it is one step.
func TestEveryPageIsFoundFromTheIndex(t *testing.T) {
	t.Parallel()
	_, pages := written(t)
	inTexts, found, next := map[string]bool{}, map[string]bool{}, []string{"index.html"}
	for len(next) > 0 {
		page, _, _ := strings.Cut(next[0], "#")
		next = next[1:]
		if pages[page] == "" || inTexts[page] {
			continue
		}
		inTexts[page] = true
		next = append(next, leads(page, body.FindString(pages[page]))...)
	}
	for _, to := range leads("index.html", pages["index.html"]) {
		found[to] = true
	}
	for page := range pages {
		assert.True(t, found[page], "the navigation has no %s", page)
		assert.True(t, inTexts[page] || strings.HasPrefix(page, "docs/decisions/"), "no text leads to %s", page)
	}
}

// Each page has what a reader needs, whatever reads it, and nothing that runs but the search.
func TestPagesAreForEverybody(t *testing.T) {
	t.Parallel()
	dir, pages := written(t)
	for page, text := range pages {
		for _, script := range regexp.MustCompile(`(?i)<script[^>]*>`).FindAllString(text, -1) {
			assert.Regexp(t, `^<script defer src="(\.\./)*(search|sections)\.js">$`, script, page)
		}
		assert.NotRegexp(t, `<[a-z]+ [^>]*\son[a-z]+=|<[a-z]+ [^>]*style=`, text, page)
		assert.Len(t, regexp.MustCompile(`<h1[ >]`).FindAllString(text, -1), 1, page)
		assert.Len(t, regexp.MustCompile(`aria-current="page"`).FindAllString(text, -1), 1, page)
		for _, part := range []string{`<html lang="en">`, `<meta name="viewport"`, `<main id="content">`, `<a class="skip" href="#content">`, "default-src 'none'"} {
			assert.Contains(t, text, part, page)
		}
		for _, img := range regexp.MustCompile(`<img [^>]*>`).FindAllString(text, -1) {
			assert.Regexp(t, `alt="[^"]+"`, img, page)
		}
		ids := map[string]bool{}
		for _, m := range regexp.MustCompile(` id="([^"]*)"`).FindAllStringSubmatch(text, -1) {
			assert.False(t, ids[m[1]], "%s has %s twice", page, m[1])
			ids[m[1]] = true
		}
	}
	style, err := os.ReadFile(filepath.Join(dir, "style.css"))
	require.NoError(t, err)
	assert.Contains(t, string(style), "prefers-color-scheme: dark")
	assert.NotContains(t, string(style), "url(")
}

// A model finds each page from llms.txt, as Markdown whose links lead somewhere, and what tells an agent how to use duly.
func TestModelsFindEachPage(t *testing.T) {
	t.Parallel()
	dir, pages := written(t)
	text, err := os.ReadFile(filepath.Join(dir, "llms.txt"))
	require.NoError(t, err)
	require.Regexp(t, `^# duly\n\n> duly runs due tasks for AI agents\.`, string(text))
	named := regexp.MustCompile(`(?m)^- \[[^\]]+\]\(([^)]+)\)(: .+)?$`).FindAllStringSubmatch(string(text), -1)
	assert.Len(t, named, len(pages))
	for _, m := range named {
		source, err := os.ReadFile(filepath.Join("../..", m[1]))
		require.NoError(t, err)
		copied, err := os.ReadFile(filepath.Join(dir, m[1]))
		require.NoError(t, err)
		assert.Equal(t, string(source), string(copied), m[1])
	}
	skilled, err := os.ReadFile(filepath.Join(dir, skill))
	require.NoError(t, err)
	assert.Regexp(t, `^---\nname: duly\ndescription: .{50,1000}\n---\n`, string(skilled))
}

// The same documents make the same site.
func TestTheSiteIsTheSame(t *testing.T) {
	t.Parallel()
	_, first := written(t)
	_, second := written(t)
	assert.True(t, len(first) == len(second))
	for page, text := range first {
		assert.True(t, second[page] == text, page)
	}
}

// A link that leads nowhere fails the build, with its page; so does a folder that is not a site's.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	from, to := t.TempDir(), t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(from, "docs"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(from, "README.md"), []byte("# A\n\n[b](docs/b.md) ![c](docs/c.svg) [d](https://example.com)\n"), 0o644))
	_, err := build(from, to)
	require.ErrorContains(t, err, "README.md: the link docs/b.md leads nowhere")
	require.ErrorContains(t, err, "docs/c.svg")
	mine := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(mine, "letter.txt"), nil, 0o644))
	_, err = build(from, mine)
	require.ErrorContains(t, err, "name another folder")
	require.FileExists(t, filepath.Join(mine, "letter.txt"))
}

// Ids of headings are those of GitHub, so that a link works in both places.
func TestNames(t *testing.T) {
	t.Parallel()
	n := &names{}
	for _, c := range [][2]string{
		{"A `b` (c)", "a-b-c"},
		{"A b c", "a-b-c-1"},
		{"GET /v1/tasks/{id}", "get-v1tasksid"},
		{"agents[].budgets[]", "agentsbudgets"},
		{"[Standard Webhooks](https://x.example) too", "standard-webhooks-too"},
		{"handlers.KIND", "handlerskind"},
	} {
		assert.Equal(t, c[1], string(n.Generate([]byte(c[0]), 0)), c[0])
	}
}

// A reader enters by one of five doors, and developers of duly by a sixth; there are no more guides than one looks through.
func TestTheDoors(t *testing.T) {
	t.Parallel()
	_, pages := written(t)
	var names []string
	for _, m := range regexp.MustCompile(`<summary>(.*?)</summary>`).FindAllStringSubmatch(navigation.FindString(pages["index.html"]), -1) {
		names = append(names, m[1])
	}
	assert.Equal(t, []string{"Start", "Guides", "Concepts", "Reference", "Operate", "Developers"}, names)
	all, err := collect("../..")
	require.NoError(t, err)
	guides := 0
	for _, p := range all {
		if p.group == "Guides" {
			guides++
		}
		assert.Equal(t, strings.HasPrefix(p.source, "docs/decisions/"), p.group == developers && strings.Contains(p.source, "decisions"), p.source)
	}
	assert.LessOrEqual(t, guides, 12)
}

var navigation = regexp.MustCompile(`(?s)<nav class="all".*?</nav>`)

// found asks the search of a site some questions, and returns the addresses that it finds for each, the best first.
func found(t *testing.T, dir string, questions []string) (out [][]string) {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("the search is a script: no Node.js runs it here")
	}
	asked, err := json.Marshal(questions)
	require.NoError(t, err)
	program := `const fs = require("fs"), { prepare, find } = require("./search.js");
eval(fs.readFileSync("sections.js", "utf8").replace("const sections", "globalThis.sections"));
const index = prepare(sections);
console.log(JSON.stringify(` + string(asked) + `.map((q) => find(index, q).map((hit) => hit.address))));`
	cmd := exec.CommandContext(t.Context(), node, "-e", program)
	cmd.Dir = dir
	answer, err := cmd.Output()
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(answer, &out))
	return out
}

// What people look for is among the first four that the search finds for their words.
func TestTheSearch(t *testing.T) {
	t.Parallel()
	dir, pages := written(t)
	wanted := [][2]string{
		{"retry 3 times with backoff", "docs/handlers.html#retries"},
		{"two at once for each provider", "docs/limits.html#what-it-allows"},
		{"on Kubernetes", "docs/hosts/daemon.html#on-kubernetes"},
		{"cancel", "docs/reference/cli.html#duly-cancel"},
		{"failures of the last day", "docs/metrics.html#what-ran-lately-without-prometheus"},
		{"from Python", "index.html#use-it"},
		{"tokens", "docs/workers.html#credentials"},
		{"late by how much", "docs/console.html#what-each-page-answers"},
		{"what does it cost", "docs/scale.html#what-it-costs"},
		{"why has it not run", "docs/start.html#4-ask-why"},
		{"webhook signature", "docs/reference/calls.html#the-signature-of-a-webhook"},
		{"approve", "docs/signals.html#asking-a-person"},
	}
	var questions []string
	for _, w := range wanted {
		questions = append(questions, w[0])
	}
	for i, hits := range found(t, dir, questions) {
		assert.True(t, slices.Contains(hits[:min(4, len(hits))], wanted[i][1]), "%s: %q", wanted[i][0], hits)
		for _, hit := range hits {
			file, anchor, _ := strings.Cut(hit, "#")
			assert.True(t, anchor == "" || strings.Contains(pages[file], ` id="`+anchor+`"`), hit)
		}
	}
	assert.Empty(t, found(t, dir, []string{"xyzzy"})[0])
}
