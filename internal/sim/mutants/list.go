package main

// The sown faults: real ones of earlier versions, those that users of other schedulers report, and what a slip would make.

var mutants = []mutant{
	{
		name: "no-fence-check", what: "A settlement of a run that lost its lease is taken.", file: "core/memstore/settle.go",
		old: "|| c.runs[r.Index].lost {", new: "{",
	},
	{
		name: "lease-not-extended", what: "A heartbeat is answered, and the lease ends all the same.", file: "core/memstore/extend.go",
		old: "		c.term.end = now.Add(leases[i].Lease)\n", new: "		_ = now\n",
	},
	{
		name: "agenda-late", what: "An agent that gets something earlier keeps its place in the agenda.", file: "core/memstore/partition.go",
		old: "	case due < a.visit:\n		a.visit = due\n		p.agenda.fix(a)\n	}\n}\n\n// earliest", new: "	}\n}\n\n// earliest",
	},
	{
		name: "nonce-ignored", what: "A repeated claim takes other tasks.", file: "core/memstore/claim.go",
		old: "ok && r.Limit > 0 {", new: "ok && r.Limit < 0 {\n\t\t_ = fence",
	},
	{
		name: "hold-not-looked-at", what: "A claim takes what is paused.", file: "core/memstore/visit.go",
		old: "c.p.keptBy(t, c.now); ok {", new: "c.p.keptBy(t, c.now); ok && false {",
	},
	{
		name: "replace-keeps-payload", what: "A replaced task keeps its old payload.", file: "core/memstore/submit.go",
		old: "	t.Submission, t.state, t.pulse = sub, state, nil\n", new: "	sub.Body = t.Body\n	t.Submission, t.state, t.pulse = sub, state, nil\n",
	},
	{
		name: "cancel-forgotten", what: "A run ends as it likes although its task was cancelled.", file: "core/memstore/order.go",
		old: "case t.order.op == orderCancel && r.Verb != store.VerbCancel:", new: "case t.order.op == orderCancel && r.Verb == store.VerbRelease:",
	},
	{
		name: "group-counted-twice", what: "A completed task counts twice in its group.", file: "core/memstore/settle.go",
		old: "		g.Completed++\n", new: "		g.Completed += 2\n",
	},
	{
		name: "retention-not-applied", what: "Finished tasks are known for ever.", file: "core/memstore/history.go",
		old: "if f, ok = h.records[id]; ok && f.at > now.Add(-p.store.config.Retention) {", new: "if f, ok = h.records[id]; ok {",
	},
	{
		name: "cap-off-by-one", what: "One finished task too many is kept.", file: "core/memstore/history.go",
		old: "if e.n > kept+slack {\n			most = kept\n", new: "if e.n > kept+slack {\n			most = kept + 1\n",
	},
	{
		name: "resume-without-requeue", what: "A resume leaves what was put aside where it is.", file: "core/memstore/hold.go",
		old: "	p.open = append(p.open, opened{at: now, scope: s})\n", new: "	return true\n",
	},
	{
		name: "pause-end-without-requeue", what: "A pause that is over leaves what was put aside where it is.", file: "core/memstore/claim.go",
		old: "			p.unhold(t.scope, now)\n", new: "			p.forget(t.scope)\n",
	},
	{
		name: "crash-not-counted", what: "A lost lease leaves no crash.", file: "core/memstore/claim.go",
		old: "	t.crashes = max(t.crashes, 1)\n", new: "",
	},
	{
		name: "early", what: "An agent is visited half a second early.", file: "core/memstore/visit.go",
		old: "func(a *agent) bool { return a.visit <= c.now })", new: "func(a *agent) bool { return a.visit <= c.now+500 })",
	},
	{
		name: "due-rounded-down", what: "A time between two milliseconds is rounded down.", file: "core/store/time.go",
		old: "t.Add(time.Millisecond - 1).UnixMilli()", new: "t.UnixMilli()",
	},
	{
		name: "order-turned", what: "Within an agent the lowest level comes first.", file: "core/memstore/visit.go",
		old: "return level(a) < level(b)", new: "return level(a) > level(b)",
	},
	{
		name: "throttle-debounces", what: "Further activity puts a throttled run off.", file: "core/memstore/touch.go",
		old: "	if rule.Debounce {\n", new: "	if rule.Delay > 0 {\n		rule.MaxWait = 10 * rule.Delay\n",
	},
	{
		name: "limit-off-by-one", what: "An agent gets one task more than the limit.", file: "core/memstore/submit.go",
		old: "live+also.tasks >= limit", new: "live+also.tasks > limit",
	},
	{
		name: "pause-outlives-task", what: "A pause of a task stays when the task has ended.", file: "core/memstore/partition.go",
		old: "	p.forget(scope{kind: 't', name: t.Agent, id: t.ID})\n", new: "",
	},
	{
		name: "stale-hint", what: "A look does not see that the next lease ends.", file: "core/memstore/claim.go",
		old: "if due == 0 || lease != 0 && lease < due {", new: "if due == 0 && lease < due {",
	},
	{
		name: "deleted-run-goes-on", what: "A delete leaves the run its lease.", file: "core/memstore/order.go",
		old: "			c.runs[i] = held{lost: true}\n", new: "			c.runs[i].lost = false\n",
	},
	{
		name: "double-spawn", what: "A recurring task whose process dies while it books an occurrence books it twice.", file: "core/spawn.go",
		old: "childID(r.claimed.ID, occurrence)\n	sub :=", new: "childID(r.claimed.ID, s.storeNow())\n	sub :=",
	},
	{
		name: "attempt-not-counted", what: "A failed attempt is not counted.", file: "core/verdict.go",
		old: "	d.state.Attempt++\n", new: "",
	},
	{
		name: "crash-is-failure", what: "A crash counts as a failed attempt.", file: "core/verdict.go",
		old: "		d.state.RunCount++\n		d.state.ErrorCount++\n		d.add(run)\n", new: "		d.state.RunCount++\n		d.state.ErrorCount++\n		d.state.Attempt++\n		d.add(run)\n",
	},
	{
		name: "retry-after-charged", what: "RetryAfter is charged at once.", file: "core/retryafter.go",
		old: "if d.state.RetryAfters > kind.MaxRetryAfters {", new: "if d.state.RetryAfters > 0 {",
	},
	{
		name: "retry-after-early", what: "RetryAfter is repeated before its time.", file: "core/retryafter.go",
		old: "pause := max(asked, kind.Backoff) +", new: "pause := min(asked, kind.Backoff) +",
	},
	{
		name: "release-charged", what: "A run that its process gives back costs an attempt.", file: "core/release.go",
		old: "	v.settlement.State = d.state.Encode()\n}\n\n// tooLong", new: "	d.state.Attempt++\n	v.settlement.State = d.state.Encode()\n}\n\n// tooLong",
	},
	{
		name: "no-stretch", what: "Failures do not stretch the interval.", file: "core/verdict.go",
		old: "schedule.Stretch(d.interval(), d.state.Failures)", new: "schedule.Stretch(d.interval(), 0)",
	},
	{
		name: "pause-late", what: "A task that keeps failing is paused one failure late.", file: "core/verdict.go",
		old: "n/most > (n-justNow)/most", new: "(n-1)/most > (n-1-justNow)/most",
	},
	{
		name: "occurrence-lost", what: "The next occurrence of a cron is passed over.", file: "core/occurrence.go",
		old: "	next := d.after(d.nominal(), interval)\n", new: "	next := d.after(d.after(d.nominal(), interval), interval)\n",
	},
	{
		name: "frozen-starts", what: "A process that was frozen past its leases starts what it had claimed.", file: "core/run.go",
		old: "		if !p.heart.lapsed(r.claimed) {\n			return false\n		}\n", new: "		if true {\n			return false\n		}\n",
	},
	{
		name: "suspect-among-others", what: "A task whose last run lost its process runs among others.", file: "core/run.go",
		old: "	case c.Crashes > 0:\n", new: "	case c.Crashes > 1000:\n",
	},
	{
		name: "crashes-off-by-one", what: "A poisonous task gets one more try.", file: "core/run.go",
		old: "c.Crashes > p.s.config.MaxCrashes {", new: "c.Crashes > p.s.config.MaxCrashes+1 {",
	},
	{
		name: "kind-slots-ignored", what: "The slots of a kind do not bound it.", file: "core/slots.go",
		old: "	s.ofKind[kind] = most\n", new: "	_ = most\n",
	},
	{
		name: "min-interval-ignored", what: "The minimum interval of a task is not kept.", file: "core/retryafter.go",
		old: "if d.body.MinInterval == 0 {\n		return 0", new: "if d.body.MinInterval >= 0 {\n		return 0",
	},
	{
		name: "result-lost", what: "What was kept of a task goes when it is replaced.", file: "core/internal/record/state.go",
		old: "Runs: s.Runs, Result: s.Result,", new: "Runs: s.Runs,",
	},
	{
		name: "failures-not-cleared", what: "A success does not clear the failures in a row.", file: "core/verdict.go",
		old: "	default:\n		d.state.Failures = 0\n		d.nextDue(v, d.interval())", new: "	default:\n		d.nextDue(v, d.interval())",
	},
	{
		name: "learn-from-cut-offs", what: "Runs that were cut off are learned from.", file: "core/call.go",
		old: "if cause == nil && c.handler != spawner && slices.Contains(outcomes, nil) {", new: "if c.handler != spawner {\n\t\t_ = slices.Contains(outcomes, nil)",
	},
	{
		name: "release-of-nothing", what: "A release that is refused, as its task was replaced, ends the process.", file: "core/release.go",
		old: "	_, v := newDecision(r.facts())\n	v.settlement, v.released", new: "	v := verdict{}\n	v.settlement, v.released",
	},
	{
		name: "given-up-is-kept", what: "Heartbeats extend the lease of a run that was given up.", file: "core/run.go",
		old: "		p.heart.release(r.claimed) // else", new: "		// else",
	},
	{
		name: "claims-after-stop", what: "A process that is asked to end claims on.", file: "core/pull.go",
		old: "claiming, stop := context.WithCancel(p.ctx)", new: "claiming, stop := context.WithCancel(context.WithoutCancel(p.ctx))",
	},
	{
		name: "timeout-ignored", what: "A handler is not told that its time is up.", file: "core/run.go",
		old: "func() { cancel(ErrTimeout) }", new: "func() {}",
	},
	{
		name: "cancel-not-told", what: "A run is not told that its task was cancelled.", file: "core/heart.go",
		old: "		if !r.shared {\n			r.cancel(cause)\n		}\n", new: "		_ = cause\n",
	},
	{
		name: "lua-lease-not-extended", what: "A script answers a heartbeat, and the lease ends all the same.", file: "core/redisstore/scripts/extend.lua",
		old: "local till = now + lease\n", new: "local till = now\n",
	},
	{
		name: "lua-nonce-ignored", what: "A script takes other tasks when a claim is repeated.", file: "core/redisstore/scripts/claim.lua",
		old: "if before then\nlocal found", new: "if before and limit < 0 then\nlocal found",
	},
	{
		name: "lua-hold-not-looked-at", what: "A script takes all although everything is paused.", file: "core/redisstore/scripts/claim.lua",
		old: "local still = HOLDS and stopped()", new: "local still = false",
	},
	{
		name: "lua-replacement-early", what: "A replaced task is due at once when its run ends.", file: "core/redisstore/scripts/settle.lua",
		old: "due = tonumber(sub(order, 2, 14))\n", new: "due = now\n",
	},
	{
		name: "lua-group-counted-twice", what: "A script counts the end of a task twice in its group.", file: "core/redisstore/scripts/settle.lua",
		old: "groups[group][verb] = groups[group][verb] + 1", new: "groups[group][verb] = groups[group][verb] + 2",
	},
	{
		name: "lua-pause-moves", what: "A pause that is given again does not begin again.", file: "core/redisstore/scripts/hold.lua",
		old: "local since = command == 'prolong' and lasting(old)", new: "local since = lasting(old)",
	},
	{
		name: "lua-crash-keeps-count", what: "A script does not count tasks that it takes back.", file: "core/redisstore/scripts/claim.lua",
		old: "recovered = recovered + 1\n", new: "recovered = recovered\n",
	},
	{
		name: "lua-progress-lost", what: "A script drops the progress that comes with a heartbeat.", file: "core/redisstore/scripts/extend.lua",
		old: "redis.call('HSET', KEYS[2], ref, state)\n", new: "",
	},
}
