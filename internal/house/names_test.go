package house_test

// What the documents name exists: each path, target of make, command and flag of duly, key of duly.yaml, variable, route and Go
// identifier. A document that names what is gone sends its reader looking for it.

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// foreign are names in code spans that are somebody else's, or examples, with whose they are.
var foreign = map[string]string{
	"--use-container": "SAM's", "CAP_SYS_PTRACE": "Linux'", "DIGEST_SECRET": "an example", "TRYAGAIN": "Redis'", "CROSSSLOT": "Redis'",
	"TICK_TOKEN": "an example", "ALARM_SECRET": "an example", "APPROVALS_SECRET": "an example", "DIGEST_KEY": "an example", "CALLBACK_SECRET": "an example",
	"OPENAI_WEBHOOK_SECRET": "an example", "STRIPE_SECRET": "an example", "API_KEY": "an example", "AGENTS_TOKEN": "an example",
	"DULY_VALUE_TENANT": "an example", "Ann": "an example", "duly.yaml": "the user's", "duly:": "a prefix", "--long -s": "an example", "KnownFields": "yaml.v3's", "IsClusterMode": "go-redis'",
	"OTEL_METRIC_EXPORT_INTERVAL": "OpenTelemetry's", "OTEL_SERVICE_NAME": "OpenTelemetry's", "rule_files": "Prometheus'",
	"AWS_ENDPOINT_URL_LAMBDA": "Amazon's library's", "AWS_ENDPOINT_URL_SQS": "Amazon's library's",
	"multitask_strategy": "LangGraph's", "ORDERS_TOKEN": "an example", "workflow_dispatch": "GitHub's", "workflow_run": "GitHub's", "EVE_EXTERNAL_CRON": "eve's", "GITHUB_TOKEN": "an example", "GITHUB_HOOK_SECRET": "an example",
}

// Each document names only what exists, and names that are wrong would be found.
func TestDocumentsNameWhatExists(t *testing.T) {
	t.Parallel()
	k := look(t)
	pages := documents(t)
	require.Greater(t, len(pages), 30)
	for _, page := range pages {
		for _, problem := range k.check(page, read(t, page)) {
			t.Errorf("%s: %s", page, problem)
		}
	}
	for wrong, right := range wrongNames {
		assert.Len(t, k.check("docs/page.md", "Some words, "+wrong+" and others.\n"), 1, wrong)
		assert.Empty(t, k.check("docs/page.md", "Some words, "+right+" and others.\n"), right)
	}
}

// documents are the pages that say how duly is now: not the changelog, which says how it was.
func documents(t *testing.T) []string {
	t.Helper()
	out := []string{"sam/README.md", "deploy/prometheus/duly.rules.yml"}
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", ".github/*.md", ".github/*/*.md"} {
		files, err := filepath.Glob(pattern)
		require.NoError(t, err)
		out = append(out, files...)
	}
	return slices.DeleteFunc(out, func(file string) bool { return file == "CHANGELOG.md" })
}

// The list of targets in CONTRIBUTING is the one that make prints.
func TestTheListOfTargetsIsWhole(t *testing.T) {
	t.Parallel()
	text := read(t, "CONTRIBUTING.md")
	for _, m := range regexp.MustCompile(`(?m)^([a-z-]+):.*## `).FindAllStringSubmatch(read(t, "Makefile"), -1) {
		if m[1] != "help" {
			assert.True(t, strings.Contains(text, "make "+m[1]+" "), "CONTRIBUTING.md does not list make %s", m[1])
		}
	}
}

// wrongNames are wrong names of each sort, with a right one of it.
var wrongNames = map[string]string{
	"see core/nowhere.go":                "see core/doc.go",
	"see core/red*.go":                   "see core/*.go",
	"`nowhere.md`":                       "`README.md`",
	"[`adapters/nohost`]":                "[`adapters/NAME`]",
	"```\nscripts/layout.lua\n```":       "```\nscripts/redis-server.sh\n```",
	"`make nothing`":                     "`make check`",
	"```sh\nmake -C sam check\n```":      "```sh\nmake -C sam build\n```",
	"`make fuzz TIME=5s`":                "`make fuzz FUZZTIME=5s`",
	"`duly submitt`":                     "`duly submit`",
	"```\nduly list --agents ada\n```":   "```\nduly list --agent ada\n```",
	"`duly run-due -x`":                  "`duly run-due -c duly.yaml`",
	"`duly limit set --reason x`":        "`duly limit set --kind x`",
	"`duly limit --kind x`":              "`duly limit unset --kind x`",
	"`--redis-cafile`":                   "`--redis-ca`",
	"`keep: 5`":                          "`kept: 5`",
	"`activity: { quite: 30m }`":         "`activity: { quiet: 30m }`",
	"```yaml\ntask:\n  - id: a\n```":     "```yaml\ntasks:\n  - id: a\n```",
	"`max_retries`":                      "`max_retry_afters`",
	"`DULY_REDIS`":                       "`DULY_REDIS_URL`",
	"```\nDULY_TOKENS=x duly serve\n```": "```\nDULY_TOKEN=x duly serve\n```",
	"`core.Dispatcher`":                  "`core.Scheduler`",
	"`core.Config.Retention`":            "`redisstore.Config.Retention`",
	"`Config.NoField`":                   "`Config.MaxWaits`",
	"`TestNothing`":                      "`TestContract`",
	"```go\ns.Enqueue(ctx)\n```":         "```go\ns.Submit(ctx)\n```",
	"```go\ndaemon.Config{Wake: s}\n```": "```go\ndaemon.Config{Waker: s}\n```",
	"GET /v1/task":                       "GET /v1/tasks",
	"PUT /v1/tasks":                      "POST /v1/agents/ada/tasks/digest/pause",
}

// check finds what a document names that does not exist.
func (k *known) check(document, text string) []string {
	text = theirs(document, strings.ReplaceAll(text, module+"/", ""))
	problems := k.checkPaths(document, text)
	problems = append(problems, k.checkRoutes(text)...)
	code := text
	for _, block := range regexp.MustCompile("(?s)(?:^|\n)? *```([a-z]*)\n(.*?)\n *```").FindAllStringSubmatch(text, -1) {
		code = strings.Replace(code, block[0], "\n", 1)
		problems = append(problems, k.checkBlock(block[1], block[2])...)
	}
	for _, span := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(code, -1) {
		if foreign[span[1]] == "" {
			problems = append(problems, k.checkSpan(document, span[1])...)
		}
	}
	return slices.Compact(problems)
}

// exists says whether a path leads somewhere, from the root or from the document.
func exists(document, path string) bool {
	for _, base := range []string{".", filepath.Dir(document)} {
		if found, err := filepath.Glob(filepath.Join(base, path)); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

// folder is a path that begins with a folder of ours, wherever it is in a text.
var folder = regexp.MustCompile(`(?:^|[^\w/.~:{}$-])((?:adapters|bench|cmd|core|docs|examples|handlers|internal|sam|scripts|tools|\.github|\.ci)/[\w./*-]*)`)

func (*known) checkPaths(document, text string) []string {
	var problems []string
	for _, m := range folder.FindAllStringSubmatch(text, -1) {
		path := strings.TrimRight(m[1], ".")
		if last := filepath.Base(path); last == strings.ToUpper(last) && !strings.Contains(last, "*") {
			path = filepath.Dir(path) // NAME is the reader's
		}
		if !exists(document, path) {
			problems = append(problems, fmt.Sprintf("there is no path %s", path))
		}
	}
	return problems
}

// checkRoutes compares the calls of the HTTP API, with their methods where they are given.
func (k *known) checkRoutes(text string) []string {
	var problems []string
	for _, m := range regexp.MustCompile(`(?:\b(GET|POST|PUT|PATCH|DELETE) |[\s`+"`"+`(])(/(?:v1/openapi\.json|(?:v1|product)/[\w{}/-]+)|/healthz|/readyz|/metrics|/openapi\.json)`).FindAllStringSubmatch(text, -1) {
		if !k.serves(m[1], m[2]) {
			problems = append(problems, strings.TrimSpace("the API has no "+m[1]+" "+m[2]))
		}
	}
	return problems
}

func (k *known) serves(method, path string) bool {
	for route, methods := range k.routes {
		pattern := regexp.MustCompile(`\{\w+\}`).ReplaceAllString(route, `[^/]+`)
		if regexp.MustCompile("^"+pattern+"$").MatchString(path) && (method == "" || slices.Contains(methods, method)) {
			return true
		}
	}
	return false
}

func (k *known) checkBlock(language, block string) []string {
	problems := slices.Concat(k.checkMake(block), k.checkCommands(block), k.checkVariables(regexp.MustCompile(`\bDULY_[A-Z_]+`), block))
	switch language {
	case "go":
		problems = append(problems, k.checkGo(block)...)
	case "yaml":
		if !strings.HasPrefix(block, "groups:") { // rules for Prometheus
			problems = append(problems, k.checkKeys(block)...)
		}
	}
	return problems
}

func (k *known) checkSpan(document, span string) []string {
	problems := slices.Concat(k.checkMake(span), k.checkCommands(span), k.checkVariables(regexp.MustCompile(`\b[A-Z]+_[A-Z_]+\b`), span), k.checkPackages(span))
	none := func(what string) { problems = append(problems, fmt.Sprintf("there is no %s %s", what, span)) }
	name, _, _ := strings.Cut(span, " ")
	switch {
	case strings.HasPrefix(span, "--"):
		if !k.flags[""][name] {
			none("flag")
		}
	case regexp.MustCompile(`^[a-z_]+:( |$)`).MatchString(span):
		problems = append(problems, k.checkKeys(span)...)
	case regexp.MustCompile(`^[a-z]+(_[a-z0-9]+)+$`).MatchString(span):
		if !k.words[span] {
			none("name")
		}
	case regexp.MustCompile(`^[\w.-]+\.(go|md|lua|ya?ml|json|sh|txt|mod|sum|gz)$`).MatchString(span):
		if !exists(document, span) {
			none("file")
		}
	case regexp.MustCompile(`^[A-Z]\w*(\.[A-Z]\w*)?$`).MatchString(span) && regexp.MustCompile(`[a-z]`).MatchString(span):
		if !k.anywhere[span] && !k.words[span] && !k.promotes(k.anywhere, span) {
			none("identifier")
		}
	}
	return problems
}

// promotes says whether Type.Member may be a member of something that Type embeds, or stands for.
func (k *known) promotes(names map[string]bool, name string) bool {
	typ, member, _ := strings.Cut(name, ".")
	return names[typ+".*"] && k.anywhere[member]
}

func (k *known) checkMake(code string) []string {
	var problems []string
	for _, m := range regexp.MustCompile(`(?m)(?:^|[;&(#] ?)make (?:-C (\S+) )?([a-z][a-z-]*)((?: [A-Z]+=)?)`).FindAllStringSubmatch(code, -1) {
		folder := m[1]
		if folder == "" {
			folder = "."
		}
		if !k.targets[folder][m[2]] {
			problems = append(problems, "make has no target "+m[2]+" in "+folder)
		}
		if name := strings.Trim(m[3], " ="); name != "" && !strings.Contains(k.makefile, "$("+name+")") {
			problems = append(problems, "no Makefile has a variable "+name)
		}
	}
	return problems
}

// checkCommands looks at each command line that begins with duly.
func (k *known) checkCommands(code string) []string {
	var problems []string
	for _, m := range regexp.MustCompile(`(?m)(?:^|[;&|(#] ?|[A-Z]=\S* |/bin/)duly ([a-z][a-z-]*)([^\n|;#]*)`).FindAllStringSubmatch(code, -1) {
		name := m[1]
		flags, ok := k.flags[name]
		if !ok {
			problems = append(problems, "duly has no command "+name)
			continue
		}
		// limit set is a command within a command.
		if words := strings.Fields(m[2]); len(words) > 0 && k.flags[name+" "+words[0]] != nil {
			name += " " + words[0]
			flags = k.flags[name]
		}
		arguments := regexp.MustCompile(`'[^']*'|"[^"]*"`).ReplaceAllString(m[2], "")
		for _, flag := range regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`).FindAllStringSubmatch(arguments, -1) {
			if !flags[flag[1]] {
				problems = append(problems, "duly "+name+" has no flag "+flag[1])
			}
		}
	}
	return problems
}

func (k *known) checkVariables(pattern *regexp.Regexp, code string) []string {
	var problems []string
	for _, name := range pattern.FindAllString(code, -1) {
		if !k.words[name] && foreign[name] == "" {
			problems = append(problems, "nothing reads a variable "+name)
		}
	}
	return problems
}

// checkKeys looks at the keys of a piece of duly.yaml.
func (k *known) checkKeys(text string) []string {
	var node yaml.Node
	if err := yaml.Unmarshal([]byte(text), &node); err != nil {
		return []string{err.Error()}
	}
	var problems []string
	for _, key := range keysOf(&node) {
		if !k.keys[key] {
			problems = append(problems, "duly.yaml has no key "+key)
		}
	}
	return problems
}

// checkPackages looks at what is named with its package: pkg.Name, or pkg.Type.Member.
func (k *known) checkPackages(code string) []string {
	var problems []string
	for _, m := range regexp.MustCompile(`\b([a-z]+)\.([A-Z]\w*(?:\.[A-Z]\w*)?)`).FindAllStringSubmatch(code, -1) {
		exports, own := k.exports[m[1]], regexp.MustCompile(`\b`+m[1]+`(, \w+)? := `).MatchString(code)
		if exports != nil && !own && !exports[m[2]] && !k.promotes(exports, m[2]) {
			problems = append(problems, "there is no "+m[1]+"."+m[2])
		}
	}
	return problems
}

// checkGo looks at Go code that is not compiled: at packages, at methods of what has a one-letter name, and at the fields of literals.
func (k *known) checkGo(code string) []string {
	problems := k.checkPackages(code)
	for _, m := range regexp.MustCompile(`\b[a-z]\.([A-Z]\w*)|[{ ]([A-Z]\w*): `).FindAllStringSubmatch(code, -1) {
		if name := m[1] + m[2]; !k.anywhere[name] {
			problems = append(problems, "nothing of duly's has a "+name)
		}
	}
	return problems
}
