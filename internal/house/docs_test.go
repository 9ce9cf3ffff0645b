package house_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

// blocksOf are the fenced blocks of a file in one language.
func blocksOf(t *testing.T, file, language string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var out []string
	for _, m := range regexp.MustCompile("(?s)\n```"+language+"\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
		out = append(out, m[1])
	}
	require.NotEmpty(t, out, "%s has no %s block", file, language)
	return out
}

// Every command of the README is run, in order, against a Redis of the test's own. A duly daemon is left running for what
// follows it; targets of make must exist, and `make run` must show something within seconds.
func TestReadmeCommands(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 5, followed(t, "README.md").ran) // and its file
}

// Every command of the tour is run in the same way.
func TestTourCommands(t *testing.T) {
	t.Parallel()
	assert.GreaterOrEqual(t, followed(t, tour).ran, 24, "the tour has more commands than that")
}

// tour is the page whose first file has the handlers that other pages use.
const tour = "docs/tour.md"

// followed follows a page, and runs what is due by each of its files.
func followed(t *testing.T, page string) *reader {
	t.Helper()
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make")
	}
	r := newReader(t, page)
	r.follow(page)
	for i, text := range blocksOf(t, page, "yaml") {
		config := fmt.Sprintf("page-%d.yaml", i)
		require.NoError(t, os.WriteFile(filepath.Join(r.dir, config), []byte(text), 0o600))
		r.run("DULY_REDIS_URL= duly run-due --all -c " + config)
	}
	return r
}

// Every command of the guide for operators is run, in order; a finding of the doctor is no mistake of the guide.
func TestOperationsCommands(t *testing.T) {
	t.Parallel()
	r := newReader(t, tour)
	r.follow("docs/operations.md")
	assert.GreaterOrEqual(t, r.ran, 19)
}

// Every command of the page about workers is run, in order: the last shows a task that a worker has completed.
func TestWorkersCommands(t *testing.T) {
	t.Parallel()
	r := newReader(t, "docs/workers.md")
	r.follow("docs/workers.md")
	assert.GreaterOrEqual(t, r.ran, 5)
	r.printsInTime("duly status --server http://127.0.0.1:8080 ada page-1", "status completed")
}

// Every command that agents are taught is run, in order.
func TestSkillCommands(t *testing.T) {
	t.Parallel()
	r := newReader(t, tour)
	r.follow("docs/skill/SKILL.md")
	assert.GreaterOrEqual(t, r.ran, 11)
}

// follow runs the commands of a page.
func (r *reader) follow(file string) {
	r.Helper()
	for _, block := range blocksOf(r.T, file, "sh") {
		for line := range strings.SplitSeq(block, "\n") {
			command, _, _ := strings.Cut(line, "  # ")
			if command = strings.TrimSpace(command); command != "" && !strings.HasPrefix(command, "#") {
				r.run(command)
			}
		}
	}
}

// reader does what a reader of the README does.
type reader struct {
	*testing.T

	dir string
	env []string
	fix *strings.Replacer
	ran int
}

// newReader has the program, a Redis, and the first file of a page.
func newReader(t *testing.T, page string) *reader {
	t.Helper()
	srv := redistest.StartTCP(t)
	dir := t.TempDir()
	fix := strings.NewReplacer("redis://127.0.0.1:6379/0", srv.URL, "127.0.0.1:8080", redistest.FreeAddr(t))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "duly.yaml"), []byte(fix.Replace(blocksOf(t, page, "yaml")[0])), 0o600))
	return &reader{
		T: t, dir: dir, env: append(os.Environ(), "PATH="+filepath.Dir(theProgram(t))+":"+os.Getenv("PATH"), "DULY_REDIS_URL="+srv.URL, "XDG_STATE_HOME="+filepath.Join(dir, "s")),
		fix: fix,
	}
}

func (r *reader) run(command string) {
	r.Helper()
	r.ran++
	switch {
	case command == "make run":
		r.makeRun()
	case strings.HasPrefix(command, "make "):
		arguments, _, _ := strings.Cut(command, "#")
		out, err := exec.CommandContext(r.Context(), "make", append(strings.Fields(arguments)[1:], "-n")...).CombinedOutput()
		require.NoError(r, err, "%s: %s", command, out)
	case strings.HasPrefix(command, "export "):
		r.env = append(r.env, r.fix.Replace(strings.TrimPrefix(command, "export ")))
	case strings.HasPrefix(command, "duly daemon"):
		cmd := r.shell("exec " + command)
		r.start(cmd, "listening")
	case strings.HasPrefix(command, "curl ") && !have("curl"):
		r.Logf("not run, as there is no curl: %s", command)
	default:
		cmd := r.shell(strings.Replace(command, "curl -s ", "curl -sS --fail ", 1))
		out, err := cmd.CombinedOutput()
		require.NoError(r, err, "%s: %s", command, out)
		assert.NotEmpty(r, out, command)
	}
}

func have(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}

func (r *reader) shell(command string) *exec.Cmd {
	cmd := exec.CommandContext(r.Context(), "sh", "-c", r.fix.Replace(command))
	cmd.Dir, cmd.Env = r.dir, r.env
	return cmd
}

// makeRun is what `make run` runs, with the address that it serves changed to a free one.
func (r *reader) makeRun() {
	r.Helper()
	out, err := exec.CommandContext(r.Context(), "make", "--no-print-directory", "-n", "run").CombinedOutput()
	require.NoError(r, err, string(out))
	commands := strings.Split(strings.TrimSpace(string(out)), "\n") // a message, the build, and the daemon
	require.Len(r, commands, 3)
	require.Regexp(r, "^echo 'building bin/quickstart/duly.* >&2$", commands[0])
	require.Regexp(r, "^go build .* -o bin/quickstart/duly ./cmd/duly$", commands[1])
	require.Equal(r, "bin/quickstart/duly daemon -c examples/quickstart/duly.yaml --store file:bin/quickstart/tasks", commands[2])
	text, err := os.ReadFile("examples/quickstart/duly.yaml")
	require.NoError(r, err)
	file := filepath.Join(r.dir, "quickstart.yaml")
	require.NoError(r, os.WriteFile(file, []byte(r.fix.Replace(string(text))), 0o600))
	cmd := exec.CommandContext(r.Context(), theProgram(r.T), "daemon", "-c", file, "--store", "file:"+filepath.Join(r.dir, "quickstart"))
	begun := time.Now()
	stop := r.start(cmd, "every two seconds")
	assert.Less(r, time.Since(begun), 5*time.Second, "something to see within seconds")
	stop()
}

// start runs a program until the test ends, and waits until it has printed a text.
func (r *reader) start(cmd *exec.Cmd, text string) (stop func()) {
	r.Helper()
	out, err := cmd.StderrPipe()
	require.NoError(r, err)
	cmd.Stdout = cmd.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	ctx, cancel := context.WithTimeout(r.Context(), 20*time.Second)
	defer cancel()
	require.NoError(r, cmd.Start())
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	}
	r.Cleanup(stop)
	seen := make(chan string, 2) // nothing when the text was printed, everything when the program has ended
	go func() {
		var all bytes.Buffer
		lines := bufio.NewScanner(out)
		for found := false; lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			if !found && strings.Contains(lines.Text(), text) {
				found = true
				seen <- ""
			}
		}
		seen <- all.String()
	}()
	select {
	case problem := <-seen:
		require.Empty(r, problem, "it ended without printing %q", text)
	case <-ctx.Done():
		r.Fatalf("it did not print %q", text)
	}
	return stop
}

// The Go program of the tour compiles, and the lines of the README do in a function that has what they use.
func TestReadmeProgram(t *testing.T) {
	t.Parallel()
	const frame = `package main

import (
	"context"
	"time"

	"github.com/seed-6f6f2c11/duly/core"
)

type Digest struct{ Topic string }

func main() { _ = run }

func run(ctx context.Context, store core.Store) error {
	LINES
	return err
}
`
	dir := t.TempDir()
	programs := blocksOf(t, tour, "go")
	for _, lines := range blocksOf(t, "README.md", "go") {
		programs = append(programs, strings.Replace(frame, "LINES", lines, 1))
	}
	for i, program := range programs {
		file := filepath.Join(dir, fmt.Sprintf("%d.go", i))
		require.NoError(t, os.WriteFile(file, []byte(program+"\n"), 0o600))
		root, err := os.Getwd()
		require.NoError(t, err)
		overlay, err := json.Marshal(map[string]map[string]string{"Replace": {filepath.Join(root, "internal/readme/main.go"): file}})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
		out, err := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"),
			"-o", filepath.Join(dir, "program"), "./internal/readme").CombinedOutput()
		require.NoError(t, err, string(out))
	}
}

// Every test that docs/guarantees.md names exists, and its ACL is the one that is tested.
func TestGuaranteesNameTests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/guarantees.md")
	require.NoError(t, err)
	missing, named := missingTests(t, string(text))
	assert.Empty(t, missing)
	assert.Greater(t, named, 20)
	acl := regexp.MustCompile(`(?s)\nACL SETUSER duly on >PASSWORD (.*?)\n` + "```").FindStringSubmatch(string(text))
	require.NotNil(t, acl)
	source, err := os.ReadFile("core/redisstore/open_test.go")
	require.NoError(t, err)
	tested := regexp.MustCompile(`(?s)const leastPrivilege = (.*?)\n\nfunc`).FindStringSubmatch(string(source))
	require.NotNil(t, tested)
	clean := func(s string) []string {
		return strings.Fields(regexp.MustCompile(`" \+|"|on >secret`).ReplaceAllString(s, ""))
	}
	assert.Equal(t, clean(tested[1]), clean(acl[1]))
}

// What the README promises is promised in docs/guarantees.md, by number.
func TestTheReadmePromisesWhatIsShown(t *testing.T) {
	t.Parallel()
	guarantees, err := os.ReadFile("docs/guarantees.md")
	require.NoError(t, err)
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	section := regexp.MustCompile(`(?s)\n## What you can rely on\n(.*?)\n## `).FindSubmatch(readme)
	require.NotNil(t, section)
	promises := regexp.MustCompile(`(?m)^- .*$`).FindAllString(string(section[1]), -1)
	require.NotEmpty(t, promises)
	for _, promise := range promises {
		numbers := regexp.MustCompile(`\(([0-9, ]+)\)\.$`).FindStringSubmatch(promise)
		if !assert.NotNil(t, numbers, "%q does not end with the numbers of promises", promise) {
			continue
		}
		for number := range strings.SplitSeq(numbers[1], ", ") {
			assert.Contains(t, string(guarantees), "\n| "+number+" | ", "%q", promise)
		}
	}
}

// The page about handlers has a configuration that works. What programs and servers get and may say is in docs/reference.
func TestHandlersAreDescribed(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("docs/handlers.md")
	require.NoError(t, err)
	config := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	require.NotNil(t, config)
	file := filepath.Join(t.TempDir(), "duly.yaml")
	require.NoError(t, os.WriteFile(file, config[1], 0o600))
	out, err := exec.CommandContext(t.Context(), theProgram(t), "run-due", "--all", "-c", file, "--store", "memory").CombinedOutput()
	require.NoError(t, err, string(out))
}

// Every host has its page, which answers the same four questions.
func TestEveryHostIsDescribed(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/hosts/*.md")
	require.NoError(t, err)
	var hosts []string
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	for _, page := range pages {
		hosts = append(hosts, strings.TrimSuffix(filepath.Base(page), ".md"))
		assert.Contains(t, string(readme), "("+page+")", "the README leads to each page")
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		sections := map[string]string{}
		for _, section := range strings.Split(string(text), "\n## ")[1:] {
			heading, body, _ := strings.Cut(section, "\n")
			sections[heading] = body
		}
		for _, heading := range []string{"When to use it", "Set-up", "What it costs", "Limits"} {
			assert.Greater(t, len(strings.Fields(sections[heading])), 20, "%s: %q says little or nothing", page, heading)
		}
		n := setUp(sections["Set-up"])
		assert.Positive(t, n, page)
		assert.Less(t, n, 10, "%s: a host is set up in a few commands", page)
	}
	assert.Subset(t, hosts, []string{"daemon", "http", "cron", "lambda", "cloud-functions"})
}

// setUp is how many commands the first block of commands of a page has: lines that go on, comments and flags on lines of their own are none.
func setUp(section string) (n int) {
	_, block, _ := strings.Cut(section, "\n```\n")
	block, _, _ = strings.Cut(block, "\n```")
	for line := range strings.SplitSeq(block, "\n") {
		if line != "" && !strings.HasPrefix(line, "#") && !strings.HasPrefix(line, " ") {
			n++
		}
	}
	return n
}

// The commands of duly on those pages have the flags that they are given.
func TestHostsCommandsHaveTheirFlags(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/hosts/*.md")
	require.NoError(t, err)
	program := theProgram(t)
	help := map[string]string{}
	tried := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, block := range regexp.MustCompile("(?s)```\n(.*?)\n```").FindAllStringSubmatch(string(text), -1) {
			for _, m := range regexp.MustCompile(`(?m)\bduly ([a-z][a-z-]*)((?: +-.*)?)$`).FindAllStringSubmatch(block[1], -1) {
				if help[m[1]] == "" {
					out, err := exec.CommandContext(t.Context(), program, m[1], "--help").CombinedOutput()
					require.NoError(t, err, "%s: duly %s", page, m[1])
					help[m[1]] = string(out)
				}
				for _, flag := range regexp.MustCompile(`(?:^| )(--?[a-z][a-z-]*)`).FindAllStringSubmatch(m[2], -1) {
					tried++
					assert.Regexp(t, `(?m)^ +(-[a-z], )?`+flag[1]+`[, ]`, help[m[1]], "%s: duly %s has no %s", page, m[1], flag[1])
				}
			}
		}
	}
	assert.GreaterOrEqual(t, tried, 8)
}
