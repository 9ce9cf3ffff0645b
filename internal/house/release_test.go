package house_test

// What a release needs: a changelog in its form, a configuration that builds the right program for the right machines, and a
// CI that runs what everybody runs. `make release-check` also asks goreleaser itself.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// sections are those of Keep a Changelog, in the order in which they come.
var sections = []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}

// The changelog has the form of Keep a Changelog.
func TestChangelog(t *testing.T) {
	t.Parallel()
	text := read(t, "CHANGELOG.md")
	assert.Empty(t, checkChangelog(text))

	const released = "\n## [0.2.0] - 2026-03-01\n\n### Added\n\n- b\n\n## [0.1.0] - 2026-01-02\n\n### Fixed\n\n- a\n\n" +
		"[0.2.0]: https://example.com/2\n[0.1.0]: https://example.com/1\n"
	begin := "# Changelog\n\n## [Unreleased]\n"
	assert.Empty(t, checkChangelog(begin+released))
	for wrong, problem := range map[string]string{
		"# Changelog\n" + released:                                               "begins with [Unreleased]",
		begin + "\n### New\n\n- a\n":                                             "New is not a section",
		begin + "\n### Fixed\n\n- a\n\n### Added\n\n- b\n":                       "Added is out of order",
		begin + "\n### Added\n\n- a\n\n### Added\n\n- b\n":                       "Added is out of order",
		begin + "\n### Added\n":                                                  "Added is empty",
		begin + "\n### Added\n\na\n":                                             "not an entry",
		begin + strings.Replace(released, "0.2.0] - 2026-03-01", "0.2.0]", 1):    "must be [X.Y.Z] - YYYY-MM-DD",
		begin + strings.Replace(released, "[0.2.0] -", "[v0.2.0] -", 1):          "must be [X.Y.Z] - YYYY-MM-DD",
		begin + strings.Replace(released, "[0.2.0] -", "[0.0.9] -", 1):           "0.1.0 is not older than 0.0.9",
		begin + strings.Replace(released, "2026-03-01", "2026-01-01", 1):         "2026-01-02 is later than 2026-01-01",
		begin + strings.Replace(released, "[0.1.0]: https", "[0.1.1]: ht", 1):    "0.1.0 has no link",
		strings.Replace(begin, "# Changelog", "# News", 1) + "\n" + released:     "must begin with # Changelog",
		begin + strings.Replace(released, "\n### Added\n\n- b\n", "", 1):         "0.2.0 says nothing",
		begin + strings.Replace(released, "[0.1.0] - 2026", "[0.2.0] - 2026", 1): "0.2.0 is not older than 0.2.0",
	} {
		assert.Contains(t, strings.Join(checkChangelog(wrong), "\n"), problem, wrong)
	}
}

// checkChangelog finds where a changelog is not in its form.
func checkChangelog(text string) []string {
	var problems []string
	wrong := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if !strings.HasPrefix(text, "# Changelog\n") {
		wrong("it must begin with # Changelog")
	}
	last, lastDate := "", ""
	for i, part := range strings.Split(text, "\n## ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		problems = append(problems, checkSections(heading, body)...)
		if i == 0 {
			if heading != "[Unreleased]" {
				wrong("its first section is %s; it begins with [Unreleased]", heading)
			}
			continue
		}
		m := regexp.MustCompile(`^\[(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)\] - (\d{4}-\d\d-\d\d)$`).FindStringSubmatch(heading)
		if m == nil {
			wrong("%s must be [X.Y.Z] - YYYY-MM-DD", heading)
			continue
		}
		if last != "" && !older(m[1], last) {
			wrong("%s is not older than %s", m[1], last)
		}
		if lastDate != "" && m[2] > lastDate {
			wrong("%s is later than %s", m[2], lastDate)
		}
		if !strings.Contains(text, "\n["+m[1]+"]: https://") {
			wrong("%s has no link at the end", m[1])
		}
		if !strings.Contains(body, "\n- ") {
			wrong("%s says nothing", m[1])
		}
		last, lastDate = m[1], m[2]
	}
	return problems
}

// checkSections looks at one version of the changelog.
func checkSections(version, body string) []string {
	var problems []string
	before := -1
	for _, section := range strings.Split("\n"+body, "\n### ")[1:] {
		name, entries, _ := strings.Cut(section, "\n")
		place := slices.Index(sections, name)
		switch {
		case place < 0:
			problems = append(problems, fmt.Sprintf("%s: %s is not a section", version, name))
		case place <= before:
			problems = append(problems, fmt.Sprintf("%s: %s is out of order", version, name))
		}
		before = place
		found := false
		for line := range strings.SplitSeq(entries, "\n") {
			switch {
			case strings.HasPrefix(line, "- "):
				found = true
			case line != "" && !strings.HasPrefix(line, "  ") && !strings.HasPrefix(line, "["):
				problems = append(problems, fmt.Sprintf("%s: %q is not an entry", version, line))
			}
		}
		if !found {
			problems = append(problems, fmt.Sprintf("%s: %s is empty", version, name))
		}
	}
	return problems
}

// older compares two versions by their numbers; of equal ones a pre-release is the older.
func older(a, b string) bool {
	numbers := func(version string) []int {
		plain, pre, _ := strings.Cut(version, "-")
		var out []int
		for part := range strings.SplitSeq(plain, ".") {
			n, _ := strconv.Atoi(part)
			out = append(out, n)
		}
		if pre == "" {
			return append(out, 1)
		}
		return append(out, 0)
	}
	order := slices.Compare(numbers(a), numbers(b))
	return order < 0 || order == 0 && a < b
}

// releaseConfig is what matters of .goreleaser.yaml.
type releaseConfig struct {
	Version int
	Builds  []struct {
		Main, Binary           string
		Env, Goos, Goarch      []string
		Flags, Ldflags, Ignore []string
	}
	Archives []struct {
		Formats, Files []string
	}
	Nfpms []struct {
		Formats  []string
		Contents []struct{ Src string }
	}
	Casks []struct{ Name string } `yaml:"homebrew_casks"`
}

// A release has duly for Linux and macOS on both processors, which says its version.
func TestReleaseConfiguration(t *testing.T) {
	t.Parallel()
	var config releaseConfig
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".goreleaser.yaml")), &config))
	assert.Equal(t, 2, config.Version)
	require.Len(t, config.Builds, 1)
	build := config.Builds[0]
	assert.Equal(t, "./cmd/duly", build.Main)
	assert.Equal(t, "duly", build.Binary)
	assert.Equal(t, []string{"CGO_ENABLED=0"}, build.Env)
	assert.ElementsMatch(t, []string{"linux", "darwin"}, build.Goos)
	assert.ElementsMatch(t, []string{"amd64", "arm64"}, build.Goarch)
	assert.Empty(t, build.Ignore)
	assert.Contains(t, build.Flags, "-trimpath")
	require.Len(t, config.Archives, 1)
	assert.Contains(t, config.Archives[0].Files, "LICENSE")
	for _, file := range config.Archives[0].Files {
		assert.FileExists(t, file)
	}

	require.Len(t, config.Nfpms, 1)
	assert.Equal(t, []string{"deb", "rpm"}, config.Nfpms[0].Formats, "the tests of deploy install them")
	for _, content := range config.Nfpms[0].Contents {
		assert.FileExists(t, content.Src)
	}
	require.Len(t, config.Casks, 1)
	assert.Equal(t, "duly", config.Casks[0].Name)

	program := filepath.Join(t.TempDir(), "duly")
	flags := strings.ReplaceAll(strings.Join(build.Ldflags, " "), "{{ .Version }}", "9.8.7")
	assert.NotContains(t, flags, "{{")
	out, err := exec.CommandContext(t.Context(), "go", "build", "-ldflags", flags, "-o", program, build.Main).CombinedOutput()
	require.NoError(t, err, string(out))
	out, err = exec.CommandContext(t.Context(), program, "version").CombinedOutput()
	require.NoError(t, err)
	assert.Contains(t, string(out), "v9.8.7")
}

// CI runs what everybody runs, on each server and with two versions of Go, the older of which is what go.mod asks for.
func TestContinuousIntegration(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Strategy struct {
				Matrix map[string][]string
			}
			Steps []struct{ Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/workflows/ci.yml")), &workflow))
	assert.Equal(t, map[string]string{"contents": "read"}, workflow.Permissions)
	job := workflow.Jobs["check"]
	assert.Equal(t, ".ci/run", job.Steps[len(job.Steps)-1].Run)
	asked := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(read(t, "go.mod"))[1]
	assert.Equal(t, []string{asked + ".x", "stable"}, job.Strategy.Matrix["go"])
	assert.Equal(t, []string{"redis:6.2", "redis:7", "redis:8", "valkey/valkey:8"}, job.Strategy.Matrix["server"])
	taken := slices.ContainsFunc(job.Steps, func(step struct{ Run string }) bool {
		return strings.Contains(step.Run, "DULY_TEST_REDIS_SERVER=")
	})
	assert.True(t, taken, "the tests must get the server of the matrix")

	// Everything that .github and .ci say to dependabot and to those who report is well-formed.
	files, err := filepath.Glob(".github/*.yml")
	require.NoError(t, err)
	forms, err := filepath.Glob(".github/*/*.yml")
	require.NoError(t, err)
	for _, file := range append(files, forms...) {
		var content map[string]any
		assert.NoError(t, yaml.Unmarshal([]byte(read(t, file)), &content), file)
	}
	var updates struct {
		Updates []struct{ Directories []string }
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, ".github/dependabot.yml")), &updates))
	modules, err := filepath.Glob("*/go.mod")
	require.NoError(t, err)
	within, err := filepath.Glob("*/*/go.mod")
	require.NoError(t, err)
	for _, file := range slices.Concat(modules, within, []string{"go.mod"}) {
		folder := "/" + strings.TrimPrefix(filepath.Dir(file), ".")
		assert.Contains(t, updates.Updates[0].Directories, folder, "dependabot has to know each module")
	}
}

// The search for vulnerabilities fails if one is found, and says so if it could not be done.
func TestVulnerabilitiesFailTheCheck(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]bool{0: true, 3: false, 1: true} {
		folder := t.TempDir()
		program := fmt.Sprintf("#!/bin/sh\nexit %d\n", status)
		require.NoError(t, os.WriteFile(filepath.Join(folder, "govulncheck-v1"), []byte(program), 0o755))
		out, err := exec.CommandContext(t.Context(), "scripts/vuln.sh", "example.com/govulncheck@v1", folder).CombinedOutput()
		assert.Equal(t, want, err == nil, "%d: %v", status, err)
		assert.Equal(t, status == 1, strings.Contains(string(out), "SKIPPED"), "%d: %s", status, out)
	}
}
