package reference

// The page of the metrics, out of two scrapes.

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// metric is one of a scrape.
type metric struct {
	name, help, kind string
	labels           map[string]map[string]bool // their values
}

// labelText says what each label is, and whether its values are all that there can be.
var labelText = map[string]struct {
	closed bool
	text   string
}{
	"code":      {true, "why a submit was refused: too deep, or too many, see [errors](errors.md)"},
	"each":      {false, "what a limit or a budget counts by itself: `agent`, `key`, of a budget also `task`; empty if it counts all together"},
	"fault":     {true, "what an audit has found"},
	"kind":      {false, "a kind that has a handler in this process, and `other` for all others; of a limit or a budget the kind that it names, or empty"},
	"limit_key": {false, "the limit key that a limit or a budget names, or empty"},
	"outcome": {true, "how a run ended. `failed` is for good: the task is dead, or an occurrence of a recurring one failed; `retried` has failed and will be tried again. " +
		"`skipped` is an occurrence that did not run, `crashed` a task that is dead because its runs crashed repeatedly, `lost` a lost lease, `released` uncharged, for example at shutdown"},
	"per":     {false, "the period of a budget: `hour`, `day` or `month`"},
	"role":    {true, "`worker` pulls runs from a server, `process` has handlers of its own"},
	"reason":  {true, "why no process can run a task"},
	"state":   {true, "of slots"},
	"status":  {true, "of tasks; `resting` are activity tasks that wait for activity"},
	"unit":    {false, "what a budget counts"},
	"verb":    {true, "what the store was asked to do"},
	"version": {false, "of duly"},
}

var (
	helpOrType = regexp.MustCompile(`^# (HELP|TYPE) (duly_\w+) (.*)$`)
	series     = regexp.MustCompile(`^(duly_\w+)(?:\{(.*)\})? \S+$`)
	pair       = regexp.MustCompile(`(\w+)="([^"]*)"`)
)

// scrape is what one has of duly's metrics, by their names, and the upper ends of the buckets of histograms.
type scrape struct {
	metrics map[string]*metric
	buckets map[string][]string
}

// scraped reads the text of a scrape.
func scraped(text string) scrape {
	s := scrape{metrics: map[string]*metric{}, buckets: map[string][]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if m := helpOrType.FindStringSubmatch(line); m != nil {
			if s.metrics[m[2]] == nil {
				s.metrics[m[2]] = &metric{name: m[2], labels: map[string]map[string]bool{}}
			}
			if m[1] == "HELP" {
				s.metrics[m[2]].help = m[3]
			} else {
				s.metrics[m[2]].kind = m[3]
			}
		} else if m := series.FindStringSubmatch(line); m != nil {
			s.add(m[1], m[2])
		}
	}
	return s
}

// add notes the labels of a series. Those of a histogram are under its own name.
func (s *scrape) add(name, labels string) {
	for _, end := range []string{"_bucket", "_sum", "_count"} {
		if base, ok := strings.CutSuffix(name, end); ok && s.metrics[base] != nil {
			name = base
		}
	}
	for _, label := range pair.FindAllStringSubmatch(labels, -1) {
		if label[1] == "le" {
			if !slices.Contains(s.buckets[name], label[2]) {
				s.buckets[name] = append(s.buckets[name], label[2])
			}
			continue
		}
		put(s.metrics[name].labels, label[1], label[2])
	}
}

// put adds a value to those of a label.
func put(all map[string]map[string]bool, label, value string) {
	if all[label] == nil {
		all[label] = map[string]bool{}
	}
	all[label][value] = true
}

// Metrics is the page of the metrics, of two scrapes of one process: one while its store answers and one while it does not. What only the first has is
// a figure of the store.
func Metrics(with, without string) (string, error) {
	all, own := scraped(with), scraped(without)
	var b strings.Builder
	b.WriteString("# Metrics\n\n" + generated + `
` + "`GET /metrics`" + ` of ` + "`duly daemon`" + ` and ` + "`duly serve`" + ` answers in the text format of Prometheus. [The guide](../metrics.md) has alert rules, and says how to measure a program of your own.

## Of a process

` + "`sum`" + ` these over processes.
`)
	figures(&b, all.metrics, func(name string) bool { return own.metrics[name] != nil })
	b.WriteString("\n## Of the store\n\nThese are the same wherever they are scraped: take the `max`. While the store does not answer, they are missing.\n")
	figures(&b, all.metrics, func(name string) bool { return own.metrics[name] == nil })
	if err := labels(&b, all.metrics); err != nil {
		return "", err
	}
	b.WriteString("\n## Buckets\n\n| histogram | upper ends of its buckets, in seconds |\n|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all.buckets)) {
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(all.buckets[name], ", "))
	}
	return b.String(), nil
}

// figures writes a table of some metrics.
func figures(b *strings.Builder, all map[string]*metric, which func(name string) bool) {
	b.WriteString("\n| metric | type | labels | unit | what it says |\n|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if m := all[name]; which(name) {
			fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", name, m.kind, list(slices.Sorted(maps.Keys(m.labels))), unitOf(name), cell(m.help))
		}
	}
}

// labels writes what the labels of all metrics say.
func labels(b *strings.Builder, all map[string]*metric) error {
	values := map[string]map[string]bool{}
	for _, m := range all {
		for label, of := range m.labels {
			for value := range of {
				put(values, label, value)
			}
		}
	}
	b.WriteString("\n## Labels\n\n| label | values | what it says |\n|---|---|---|\n")
	for _, label := range slices.Sorted(maps.Keys(values)) {
		says, ok := labelText[label]
		if !ok {
			return fmt.Errorf("nothing says what the label %s is: add it to labelText", label)
		}
		known := ""
		if says.closed {
			known = list(slices.Sorted(maps.Keys(values[label])))
		}
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", label, known, cell(says.text))
	}
	return nil
}

// unitOf is the unit that the name of a metric ends with, as Prometheus has it.
func unitOf(name string) string {
	switch {
	case strings.HasSuffix(name, "_seconds"):
		return "seconds"
	case name == "duly_budget_amount" || name == "duly_budget_used":
		return "`unit`"
	case name == "duly_store_up":
		return "0 or 1"
	case strings.HasSuffix(name, "_info"):
		return "1"
	default:
		return "a count"
	}
}

// list are names in code spans.
func list(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
