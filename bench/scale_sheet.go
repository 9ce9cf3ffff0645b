package main

// The figures of the scale measurement, as the report shows them.

import "fmt"

// row makes figures of one heading. None has a target: they are what docs/scale.md is computed from, and a slow hour of the machine
// is no fault of duly's.
func row(group string) func(name, unit string, value float64) sample {
	return func(name, unit string, value float64) sample {
		return sample{spec{"scale", group, name, unit, lower, target{}}, value}
	}
}

// samples are what was found of duly, in the order in which it was measured.
func (s *scaleFound) samples() []sample {
	fleet := row(fmt.Sprintf("scale: %s with %s waiting, %s", ofAgents(s.Agents), count(s.Waiting, "task"), count(s.Partitions, "partition")))
	out := []sample{
		fleet("memory", "bytes/agent", s.Bytes),
		fleet("submit in batches, Redis CPU", "us/task", s.Fill.RedisUS),
		fleet("submit in batches, commands", "/task", s.Fill.Commands),
		fleet("submit in batches, time", "s", s.Fill.Seconds),
		fleet("longest script while it is filled", "ms", s.Fill.Longest),
		fleet("submit of one task, commands", "/task", s.Single.Commands),
		fleet("submit of one task, Redis CPU", "us/task", 1000*s.Single.RedisMS),
	}
	for _, k := range s.Sorts {
		out = append(out, fleet("memory, "+k.Name, "bytes/agent", k.Bytes))
	}
	rest := row("scale: nothing due, one daemon")
	out = append(out,
		rest("commands", "/s", s.Rest.Commands),
		rest("commands sent", "/s", s.Rest.Sent),
		rest("Redis CPU", "us/s", s.Rest.RedisUS),
		rest("Redis CPU without a daemon", "us/s", s.Rest.AloneUS))
	for i := range s.Windows {
		out = append(out, s.Windows[i].samples()...)
	}
	return append(out, s.reads()...)
}

// windowGroup is the heading of a window. asynq has no figure at such a rate here, so that its whole life is what runs are compared with.
func windowGroup(w *winFound) string {
	return fmt.Sprintf("scale: %.0f s %s, one daemon; asynq: whole lives at full load", w.Seconds, w.Name)
}

// samples are the figures of one window.
func (w *winFound) samples() []sample {
	figure := row(windowGroup(w))
	return []sample{
		figure("runs", "runs/s", w.Runs),
		figure("Redis CPU", "us/run", w.RedisUS),
		figure("client CPU", "us/run", w.ClientUS),
		figure("Redis commands", "/run", w.Commands),
		figure("calls sent", "/run", w.Sent),
		figure("bytes sent and received", "/run", w.Bytes),
		figure("due to start, p50", "ms", w.LateP50),
		figure("due to start, p99", "ms", w.LateP99),
		figure("another client's PING p50", "ms", w.PingP50),
		figure("another client's PING p99", "ms", w.PingP99),
		figure("longest script", "ms", w.Longest),
	}
}

// asynqSamples give asynq's whole life to each window.
func (s *scaleFound) asynqSamples() []sample {
	var out []sample
	for i := range s.Windows {
		figure := row(windowGroup(&s.Windows[i]))
		out = append(out, figure("Redis CPU", "us/run", 1000*s.Asynq.RedisMS), figure("Redis commands", "/run", s.Asynq.Commands))
	}
	return out
}

// reads are the figures of what looks at all agents.
func (s *scaleFound) reads() []sample {
	var out []sample
	for _, w := range []struct {
		name string
		workFound
	}{
		{"an audit of all tasks", s.Audit}, {"pages of 1,000 through all agents", s.Pages}, {"the statistics", s.Stats}, {"opening the store", s.Open},
	} {
		figure := row("scale: " + w.name)
		out = append(out,
			figure("time", "s", w.Seconds),
			figure("commands", "", w.Commands),
			figure("Redis CPU", "ms", w.RedisMS),
			figure("longest script", "ms", w.Longest))
	}
	poll := row("scale: one read of an agent's queue, by hand")
	return append(out, poll("Redis CPU", "us", 1000*s.Poll.RedisMS))
}
