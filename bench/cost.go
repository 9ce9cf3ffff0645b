package main

// Cost: what fleets of any size need and what that costs a month, from the figures of a measured fleet and from prices.
// docs/scale.md shows it.

import (
	"math"
	"time"
)

// month is what prices are for.
const (
	monthHours = 730.
	monthDays  = monthHours / 24
)

// node is a type of node, with the price of an hour.
type node struct {
	name    string
	gib     float64
	dollars float64
}

// Prices in us-east-1 without commitment, taxes and free tiers. They change: docs/scale.md says of which date they are, and where to
// look them up.
var nodes = []node{
	{"cache.r7g.large", 13.07, 0.1752},
	{"cache.r7g.xlarge", 26.32, 0.3496},
	{"cache.r7g.2xlarge", 52.82, 0.6984},
	{"cache.r7g.4xlarge", 105.81, 1.396},
}

// plan is a plan for so many GB at a price a month.
type plan struct{ gb, dollars float64 }

var plans = []plan{{0.25, 10}, {1, 20}, {5, 100}, {10, 200}, {50, 400}, {100, 800}, {500, 1500}}

const (
	serverlessGBHour  = 0.084  // ElastiCache Serverless for Valkey
	serverlessMillion = 0.0023 // the same, a million ECPUs
	upstashCommands   = 0.20   // 100,000 commands
	upstashGB         = 0.25   // a GB and month, the first one free
	upstashTraffic    = 0.03   // a GB, the first ones free
	upstashFree       = 200    // of these
	upstashMost       = 10_000 // commands a second
	upstashMostGB     = 100    // of data, where commands are paid for
)

// What is left free of a node: ElastiCache reserves a quarter for replication and backups, and a quarter of the rest is for growth. No
// master is to use more than half of the core that runs its scripts.
const (
	reserved = 0.25
	headroom = 0.25
	busiest  = 0.5
)

// partitionAgents is how many agents a partition has: as many as were measured in one.
const partitionAgents = 1_000_000

// need is what a fleet needs.
type need struct {
	agents   float64
	bytes    float64
	runsDay  float64
	peakRuns float64 // a second
	commands float64 // a day, those inside scripts as well
	sent     float64 // a day, calls of clients
	peak     float64 // commands a second in the busiest hour
	cores    float64 // of Redis in the busiest hour, of the machine that measured
	traffic  float64 // bytes a day
}

// steadyBytes are the bytes of an agent once all recurring tasks have run twenty times: agents without a history count as those that
// have one.
func (s *scaleFound) steadyBytes() float64 {
	sum := 0.0
	for i, k := range s.Sorts {
		bytes := k.Bytes
		if i == 0 { // new nightly tasks; the next sort has the same ones with a history
			bytes = max(bytes, s.Sorts[1].Bytes)
		}
		sum += bytes * float64(k.PerMille) / 1000
	}
	return sum
}

// window is what was found by day or at night of the fleet's own load.
func (s *scaleFound) window(night bool) winFound {
	for _, w := range s.Windows {
		if w.Night == night && w.Factor == 1 {
			return w
		}
	}
	return winFound{}
}

// rates are the runs a second of the measured fleet by day and at night, and its submits.
func (s *scaleFound) rates() (day, night, submits float64) {
	f := newFleet(s.Agents, 0, time.Time{})
	for _, k := range f.sorts {
		if k.rhythm == days {
			submits += k.perSecond(false)
		}
	}
	return f.perSecond(false), f.perSecond(true), submits
}

// need is what so many agents need, each million of them in a partition of its own.
func (s *scaleFound) need(agents float64) need {
	k := agents / float64(s.Agents)
	byDay, atNight := s.window(false), s.window(true)
	day, night, submits := s.rates()
	seconds, dark := fleetDay.Seconds(), fleetNight.Seconds()
	runsNight, runsDay, submitsDay := k*night*dark, k*day*(seconds-dark), k*submits*seconds
	return need{
		agents: agents, bytes: agents * s.steadyBytes(), runsDay: runsNight + runsDay, peakRuns: k * night,
		commands: runsNight*atNight.Commands + runsDay*byDay.Commands + submitsDay*s.Single.Commands,
		sent:     runsNight*atNight.Sent + runsDay*byDay.Sent + submitsDay,
		peak:     k * (night*atNight.Commands + submits*s.Single.Commands),
		cores:    k * (night*atNight.RedisUS/1e6 + submits*s.Single.RedisMS/1e3),
		traffic:  runsNight*atNight.Bytes + runsDay*byDay.Bytes,
	}
}

// polled is what the same agents need if something asks the queue of each once a minute, before it has run anything.
func (s *scaleFound) polled(agents float64) need {
	perSecond := agents / time.Minute.Seconds()
	a := perSecond * fleetDay.Seconds()
	return need{
		agents: agents, bytes: agents * s.steadyBytes(), commands: a, sent: a, peak: perSecond, cores: perSecond * s.Poll.RedisMS / 1e3,
	}
}

// cluster is a choice of nodes.
type cluster struct {
	node
	masters int
	busy    float64 // of a master's core in the busiest hour
}

// mostMasters is where the search for a cluster ends.
const mostMasters = 256

// cheapest is the cluster with the lowest price that has room and time for a fleet, each master with a replica.
func (n need) cheapest() cluster {
	var best cluster
	for _, node := range nodes {
		for masters := 1; masters <= mostMasters; masters *= 2 {
			room := float64(masters) * node.gib * (1 << 30) * (1 - reserved) * (1 - headroom)
			c := cluster{node, masters, n.cores / float64(masters)}
			if room >= n.bytes && c.busy <= busiest {
				if best.masters == 0 || c.month() < 0.99*best.month() || c.month() < 1.01*best.month() && masters < best.masters {
					best = c
				}
				break
			}
		}
	}
	return best
}

// month is what the masters and a replica of each cost.
func (c cluster) month() float64 { return 2 * float64(c.masters) * c.dollars * monthHours }

// partitions is how many to choose on a cluster: a power of two, and at least as many as there are by default.
func (n need) partitions(c cluster) int {
	p := 1
	if c.masters > 1 {
		p = 8
	}
	for float64(p)*partitionAgents < n.agents || p < c.masters {
		p *= 2
	}
	return p
}

// serverless is the price of a month where memory and units of work are paid for, one unit for each command.
func (n need) serverless() float64 {
	return max(n.bytes/1e9, 0.1)*serverlessGBHour*monthHours + n.commands*monthDays/1e6*serverlessMillion
}

// payAsYouGo is the price of a month where commands are paid for; false if the plan does not allow for it.
func (n need) payAsYouGo() (float64, bool) {
	gb := n.bytes / 1e9
	dollars := n.commands*monthDays/1e5*upstashCommands + max(gb-1, 0)*upstashGB + max(n.traffic*monthDays/1e9-upstashFree, 0)*upstashTraffic
	return dollars, gb <= upstashMostGB && n.peak <= upstashMost
}

// fixed is the price of the smallest plan that has room; false if none allows for so many commands a second.
func (n need) fixed() (plan, bool) {
	for _, p := range plans {
		if p.gb*(1-headroom) >= n.bytes/1e9 {
			return p, n.peak <= upstashMost
		}
	}
	return plan{math.Inf(1), math.Inf(1)}, false
}
