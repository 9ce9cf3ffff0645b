package main

// The tables of docs/scale.md.

import (
	"fmt"
	"math"
	"strings"
)

// tables are the parts of docs/scale.md that are computed, by the marks between which they are.
func (s *scaleFound) tables() map[string]string {
	return map[string]string{
		"fleet": s.fleetTable(), "hours": s.hoursTable(), "reads": s.readsTable(), "prices": pricesTable(), "cost": s.costTable(),
	}
}

// table is a table of Markdown.
type table struct{ strings.Builder }

func newTable(head ...string) *table {
	t := &table{}
	t.row(head...)
	t.row(strings.Split(strings.Repeat("--- ", len(head)-1)+"---", " ")...)
	return t
}

func (t *table) row(cells ...string) {
	_, _ = t.WriteString("| " + strings.Join(cells, " | ") + " |\n")
}

// fleetTable has a row for each sort of agents.
func (s *scaleFound) fleetTable() string {
	t := newTable("agents with", "share", "agents", "bytes of Redis an agent")
	for _, k := range s.Sorts {
		t.row(k.Name, fmt.Sprintf("%.1f %%", float64(k.PerMille)/10), digits(k.Agents), compact(math.Round(k.Bytes)))
	}
	t.row("all, as measured", "100 %", digits(s.Agents), compact(math.Round(s.Bytes)))
	t.row("all, once each recurring task has run 20 times", "", "", compact(math.Round(s.steadyBytes())))
	return t.String()
}

// hoursTable has a column for each window. Times of the machine are ratios there, or shares of its core.
func (s *scaleFound) hoursTable() string {
	head := []string{"a minute of the fleet"}
	for _, w := range s.Windows {
		head = append(head, w.Name)
	}
	t := newTable(head...)
	for _, r := range []struct {
		name string
		of   func(w *winFound) string
	}{
		{"runs a second", func(w *winFound) string { return compact(w.Runs) }},
		{"Redis commands a run, those inside scripts as well", func(w *winFound) string { return compact(w.Commands) }},
		{"calls that the daemon sends, a run", func(w *winFound) string { return compact(w.Sent) }},
		{"bytes to and from Redis, a run", func(w *winFound) string { return compact(w.Bytes) }},
		{"Redis CPU a run, times that of the whole life of a task of asynq at full load", func(w *winFound) string {
			return compact(w.RedisUS / (1000 * s.Asynq.RedisMS))
		}},
		{"share of the core that runs the scripts", func(w *winFound) string { return percent(w.RedisUS * w.Runs / 1e6) }},
		{"due to start, p50 / p99", func(w *winFound) string { return compact(w.LateP50) + " / " + compact(w.LateP99) + " ms" }},
		{"PING of another client, p50 / p99", func(w *winFound) string { return compact(w.PingP50) + " / " + compact(w.PingP99) + " ms" }},
		{"longest script", func(w *winFound) string { return compact(w.Longest) + " ms" }},
	} {
		cells := []string{r.name}
		for i := range s.Windows {
			cells = append(cells, r.of(&s.Windows[i]))
		}
		t.row(cells...)
	}
	return t.String()
}

// readsTable has what operators and hosts do now and then, and what one submit takes.
func (s *scaleFound) readsTable() string {
	t := newTable("with "+ofAgents(s.Agents), "Redis commands", "Redis CPU", "longest script")
	for _, r := range []struct {
		name string
		workFound
	}{
		{"audit of all tasks", s.Audit}, {"pages of 1,000 through all agents", s.Pages}, {"statistics", s.Stats}, {"opening the store", s.Open},
	} {
		t.row(r.name, digits(int(r.Commands)), compact(r.RedisMS)+" ms", compact(r.Longest)+" ms")
	}
	t.row("submit in batches of 100, a task", compact(s.Fill.Commands), compact(s.Fill.RedisUS/1000)+" ms", compact(s.Fill.Longest)+" ms")
	t.row("submit of one task", compact(s.Single.Commands), compact(s.Single.RedisMS)+" ms", "")
	t.row("nothing due, one daemon, a second", compact(s.Rest.Commands), compact(max(s.Rest.RedisUS-s.Rest.AloneUS, 0)/1000)+" ms", "")
	return t.String()
}

// pricesTable has the prices that everything else is computed from.
func pricesTable() string {
	t := newTable("what", "price")
	for _, n := range nodes {
		t.row(fmt.Sprintf("`%s`, %.2f GiB", n.name, n.gib), fmt.Sprintf("$%.4f an hour", n.dollars))
	}
	t.row("ElastiCache Serverless for Valkey", fmt.Sprintf("$%.3f a GB and hour, $%.4f a million ECPUs", serverlessGBHour, serverlessMillion))
	t.row("Upstash, pay as you go", fmt.Sprintf("$%.2f for 100,000 commands, $%.2f a GB and month, $%.2f a GB of traffic above %d GB",
		upstashCommands, upstashGB, upstashTraffic, upstashFree))
	list := make([]string, len(plans))
	for i, p := range plans {
		list[i] = fmt.Sprintf("%g GB $%s", p.gb, digits(int(p.dollars)))
	}
	t.row("Upstash, fixed, a month", strings.Join(list, ", "))
	return t.String()
}

// costTable has a column for each size of a fleet.
func (s *scaleFound) costTable() string {
	sizes := []float64{1e6, 10e6, 100e6}
	head, cells := []string{""}, map[string][]string{}
	var order []string
	add := func(name, value string) {
		if cells[name] == nil {
			order = append(order, name)
		}
		cells[name] = append(cells[name], value)
	}
	for _, agents := range sizes {
		head = append(head, short(agents)+" agents")
		s.need(agents).describe(add)
		p := s.polled(agents)
		c := p.cheapest()
		add("**polled once a minute each:** commands a day", short(p.commands))
		add("commands a second, share of a master's core", short(p.peak)+", "+percent(c.busy)+" of "+count(c.masters, "master"))
		add("ElastiCache nodes, a month (polled)", money(c.month()))
		add("ElastiCache Serverless, a month (polled)", money(p.serverless()))
		add("Upstash, pay as you go, a month (polled)", priced(p.payAsYouGo()))
	}
	t := newTable(head...)
	for _, name := range order {
		t.row(append([]string{name}, cells[name]...)...)
	}
	return t.String()
}

// describe adds the rows of a fleet.
func (n need) describe(add func(name, value string)) {
	c := n.cheapest()
	add("memory", fmt.Sprintf("%.3g GB", n.bytes/1e9))
	add("masters, each with a replica", fmt.Sprintf("%d `%s`", c.masters, c.name))
	add("partitions", digits(n.partitions(c)))
	add("runs a day", short(n.runsDay))
	add("runs a second in the busiest hour", short(n.peakRuns))
	add("Redis commands a day, those inside scripts as well", short(n.commands))
	add("calls that clients send, a day", short(n.sent))
	add("share of a master's core in the busiest hour", percent(c.busy))
	add("ElastiCache nodes, a month", money(c.month()))
	add("ElastiCache Serverless, a month", money(n.serverless()))
	add("Upstash, pay as you go, a month", priced(n.payAsYouGo()))
	p, ok := n.fixed()
	add("Upstash, fixed, a month", priced(p.dollars, ok))
}

// priced is a price, and whether the plan allows for what is asked of it.
func priced(dollars float64, allowed bool) string {
	switch {
	case allowed:
		return money(dollars)
	case math.IsInf(dollars, 1):
		return "no plan"
	default:
		return "(" + money(dollars) + ")"
	}
}

// money is a price to two significant digits, as its inputs are no more precise.
func money(dollars float64) string {
	if dollars < 1 {
		return fmt.Sprintf("$%.2f", dollars)
	}
	unit := math.Pow(10, math.Max(math.Floor(math.Log10(dollars))-1, 0))
	return "$" + digits(int(math.Round(dollars/unit)*unit))
}

// percent is a share of one.
func percent(share float64) string { return fmt.Sprintf("%.2g %%", 100*share) }

// short is a number to three digits that count, with its size in words.
func short(n float64) string {
	for _, u := range []struct {
		size float64
		name string
	}{{1e9, " billion"}, {1e6, " million"}} {
		if n >= u.size {
			return fmt.Sprintf("%.3g%s", n/u.size, u.name)
		}
	}
	return digits(int(math.Round(n)))
}
