package cli_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/redistest"
)

const rulesFolder = "../../deploy/prometheus"

// rulesTests are the cases of the rules. Those that take days are apart: promtool evaluates all rules at each step of each case.
var rulesTests = []string{"duly.rules_test.yml", "duly.rules_days_test.yml"}

// prometheusTools are a prometheus and a promtool; the test is skipped where there are none.
func prometheusTools(t *testing.T) (prometheus, promtool string) {
	t.Helper()
	path := os.Getenv("DULY_TEST_PROMETHEUS")
	if path == "" {
		path, _ = exec.LookPath("prometheus")
	}
	if path == "" {
		t.Skip("no prometheus: set DULY_TEST_PROMETHEUS to what scripts/prometheus.sh prints")
	}
	return path, filepath.Join(filepath.Dir(path), "promtool")
}

// promtoolSays runs promtool in the folder of the rules, and returns what it prints and whether it is content.
func promtoolSays(t *testing.T, folder string, args ...string) (string, bool) {
	t.Helper()
	_, promtool := prometheusTools(t)
	cmd := exec.CommandContext(t.Context(), promtool, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// The rules are good ones, and each fires when it has to.
func TestTheAlertsFireWhenTheyHaveTo(t *testing.T) {
	t.Parallel()
	out, ok := promtoolSays(t, rulesFolder, "check", "rules", "duly.rules.yml")
	assert.True(t, ok, out)
	out, ok = promtoolSays(t, rulesFolder, append([]string{"test", "rules"}, rulesTests...)...)
	assert.True(t, ok, out)

	// A rule that is off by a little is found.
	folder := t.TempDir()
	rules := read(t, filepath.Join(rulesFolder, "duly.rules.yml"))
	for _, name := range rulesTests {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(read(t, filepath.Join(rulesFolder, name))), 0o600))
	}
	faults := map[string][2]string{
		"DulyStoreDown": {"duly_store_up == 0", "duly_store_up == 1"}, "DulyBudgetUsedUp": {"duly_budget_used_up) > 0", "duly_budget_used_up) > 3"},
		"DulyPausedLong": {"for: 1d", "for: 2d"}, "DulyGone": {`absent(up{job="duly"} == 1)`, `absent(up{job="duly"})`},
	}
	for _, fault := range faults {
		require.Contains(t, rules, fault[0])
		rules = strings.Replace(rules, fault[0], fault[1], 1)
	}
	require.NoError(t, os.WriteFile(filepath.Join(folder, "duly.rules.yml"), []byte(rules), 0o600))
	out, ok = promtoolSays(t, folder, append([]string{"test", "rules"}, rulesTests...)...)
	assert.False(t, ok)
	for alert := range faults {
		assert.Contains(t, out, "alertname: "+alert)
	}
	assert.NotContains(t, out, "alertname: DulyLate")
}

// Each alert has a case in which it fires, one in which it does not, and a section that says what to do.
func TestTheAlertsHaveCases(t *testing.T) {
	t.Parallel()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert               string
				Labels, Annotations map[string]string
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(rulesFolder, "duly.rules.yml"))), &file))
	var cases struct {
		Tests []struct {
			Rules []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		}
	}
	fires, quiet := map[string]bool{}, map[string]bool{}
	for _, name := range rulesTests {
		require.NoError(t, yaml.Unmarshal([]byte(read(t, filepath.Join(rulesFolder, name))), &cases))
		for _, test := range cases.Tests {
			for _, rule := range test.Rules {
				if len(rule.Expect) > 0 {
					fires[rule.Name] = true
				} else {
					quiet[rule.Name] = true
				}
			}
		}
	}
	require.Greater(t, len(file.Groups[0].Rules), 15)
	runbooks := read(t, "../../docs/alerts.md")
	for _, rule := range file.Groups[0].Rules {
		assert.True(t, fires[rule.Alert], "no case in which %s fires", rule.Alert)
		assert.True(t, quiet[rule.Alert], "no case in which %s does not", rule.Alert)
		assert.Contains(t, []string{"critical", "warning"}, rule.Labels["severity"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["summary"], rule.Alert)
		assert.NotEmpty(t, rule.Annotations["action"], rule.Alert)
		page, anchor, _ := strings.Cut(rule.Annotations["runbook_url"], "#")
		assert.Equal(t, "https://github.com/seed-6f6f2c11/duly/blob/main/docs/alerts.md", page, rule.Alert)
		assert.Equal(t, strings.ToLower(rule.Alert), anchor)
		assert.Regexp(t, "(?s)### "+rule.Alert+"\n\n[^#]*\\*\\*Look\\*\\*: [^#]*\\*\\*Do\\*\\*: ", runbooks, "a section of docs/alerts.md")
	}
}

// prometheus is one that scrapes an address, often, with the rules as they are but for their times.
type prometheus struct{ url string }

func startPrometheus(t *testing.T, target string) *prometheus {
	t.Helper()
	program, _ := prometheusTools(t)
	folder := t.TempDir()
	rules := regexp.MustCompile(`(?m)^        for: \w+$`).ReplaceAllString(read(t, filepath.Join(rulesFolder, "duly.rules.yml")), "        for: 300ms")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "duly.rules.yml"), []byte(rules), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "prometheus.yml"), fmt.Appendf(nil, `
global: { scrape_interval: 500ms, scrape_timeout: 500ms, evaluation_interval: 200ms }
rule_files: [duly.rules.yml]
scrape_configs:
  - job_name: duly
    static_configs: [{ targets: [%q] }]
`, target), 0o600))
	address := redistest.FreeAddr(t)
	cmd := exec.Command(program, "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--web.listen-address="+address)
	cmd.Dir = folder
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	p := &prometheus{url: "http://" + address}
	require.Eventually(t, func() bool { return p.get(t.Context(), "/-/ready", nil) == nil }, 30*time.Second, 50*time.Millisecond, "Prometheus does not start")
	return p
}

// get asks the API, and reads its data.
func (p *prometheus) get(ctx context.Context, path string, data any) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, res.Status)
	}
	if data == nil {
		return nil
	}
	return json.NewDecoder(res.Body).Decode(&struct{ Data any }{data})
}

// value is that of the first series of an expression; ok is false if there is none.
func (p *prometheus) value(ctx context.Context, expr string) (value float64, ok bool) {
	var data struct {
		Result []struct{ Value [2]any }
	}
	if err := p.get(ctx, "/api/v1/query?query="+url.QueryEscape(expr), &data); err != nil || len(data.Result) == 0 {
		return 0, false
	}
	text, _ := data.Result[0].Value[1].(string)
	value, err := strconv.ParseFloat(text, 64)
	return value, err == nil
}

// alerts are the states of those that are not quiet.
func (p *prometheus) alerts(ctx context.Context) map[string]string {
	var data struct {
		Alerts []struct {
			Labels map[string]string
			State  string
		}
	}
	out := map[string]string{}
	if p.get(ctx, "/api/v1/alerts", &data) == nil {
		for _, a := range data.Alerts {
			out[a.Labels["alertname"]] = cmp.Or(out[a.Labels["alertname"]], a.State)
		}
	}
	return out
}

// A Prometheus that scrapes a daemon has its figures, and no alert; after the death of the daemon it says so.
func TestAPrometheusScrapesADaemon(t *testing.T) {
	t.Parallel()
	prometheusTools(t)
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile+"tasks:\n  - { agent: ada, id: first, kind: note }\n"), "--http", "127.0.0.1:0")
	address := strings.TrimPrefix(d.url(t), "http://")
	settled(t, w.scheduler(t), "ada", "first", core.StatusCompleted)
	p := startPrometheus(t, address)
	is := func(expr string, want float64) {
		t.Helper()
		var got float64
		require.Eventually(t, func() bool {
			var ok bool
			got, ok = p.value(t.Context(), expr)
			return ok && got == want
		}, 20*time.Second, 50*time.Millisecond, "%s", expr)
	}
	is(`up{job="duly"}`, 1)
	is("duly_store_up", 1)
	is(`sum(duly_runs_total{kind="note", outcome="success"})`, 1)
	is(`max(duly_tasks{status="completed"})`, 1)
	is(`sum(duly_lag_seconds_count{kind="note"})`, 1)
	quiet := func() bool { return len(p.alerts(t.Context())) == 0 } // it has asked before its first scrape
	require.Eventually(t, quiet, 20*time.Second, 50*time.Millisecond)
	var groups struct {
		Groups []struct {
			Rules []struct{ Health string }
		}
	}
	require.Eventually(t, func() bool { // each rule was evaluated
		if p.get(t.Context(), "/api/v1/rules", &groups) != nil || len(groups.Groups) != 1 {
			return false
		}
		for _, rule := range groups.Groups[0].Rules {
			if rule.Health != "ok" {
				return false
			}
		}
		return true
	}, 20*time.Second, 50*time.Millisecond)
	assert.Len(t, groups.Groups[0].Rules, strings.Count(read(t, filepath.Join(rulesFolder, "duly.rules.yml")), "- alert: "))
	require.Eventually(t, quiet, 20*time.Second, 50*time.Millisecond)

	require.NoError(t, d.cmd.Process.Kill())
	require.Eventually(t, func() bool {
		alerts := p.alerts(t.Context())
		return alerts["DulyGone"] == "firing" && alerts["DulyProcessDown"] == "firing"
	}, 30*time.Second, 50*time.Millisecond)
	is(`up{job="duly"}`, 0)
}

// A Redis that is away is told of while the daemon lives.
func TestAPrometheusSeesThatTheStoreIsAway(t *testing.T) {
	t.Parallel()
	prometheusTools(t)
	w := newWorld(t)
	d := w.start(t, "daemon", "-c", file(t, handlersFile), "--http", "127.0.0.1:0")
	p := startPrometheus(t, strings.TrimPrefix(d.url(t), "http://"))
	require.Eventually(t, func() bool { up, _ := p.value(t.Context(), "duly_store_up"); return up == 1 }, 20*time.Second, 50*time.Millisecond)
	w.redis.Kill()
	require.Eventually(t, func() bool { return p.alerts(t.Context())["DulyStoreDown"] == "firing" }, 30*time.Second, 50*time.Millisecond)
	assert.Empty(t, p.alerts(t.Context())["DulyGone"])
}
