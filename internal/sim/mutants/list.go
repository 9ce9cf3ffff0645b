package main

import "github.com/seed-6f6f2c11/duly/internal/sow"

// The sown faults: real ones of earlier versions, those that users of other schedulers report, and what a slip would make.

// Each patch is a text that occurs once in its file, which a test holds; whoever changes that line
// writes the patch again. The faults of the store in memory come first, then those of the scheduler,
// then those of the scripts.
var plain = []sow.Fault{
	{
		Name: "no-fence-check", What: "A settlement of a run that lost its lease is taken.", File: "core/memstore/settle.go",
		Old: "|| c.runs[r.Index].lost {", New: "{",
	},
	{
		Name: "lease-not-extended", What: "A heartbeat is answered, and the lease ends all the same.", File: "core/memstore/extend.go",
		Old: "c.term.end, c.term.noticed = now.Add(leases[i].Lease), false\n", New: "c.term.end, c.term.noticed = c.term.end, false\n",
	},
	{
		Name: "agenda-late", What: "An agent that gets something earlier keeps its place in the agenda.", File: "core/memstore/partition.go",
		Old: "	case at < s.visit:\n		s.visit = at\n		p.agenda.fix(s)\n	}\n", New: "	}\n",
	},
	{
		Name: "nonce-ignored", What: "A repeated claim takes other tasks.", File: "core/memstore/claim.go",
		Old: "ok && r.Limit > 0 {", New: "ok && r.Limit < 0 {\n\t\t_ = fence",
	},
	{
		Name: "hold-not-looked-at", What: "A claim takes what is paused.", File: "core/memstore/visit.go",
		Old: "c.p.keptBy(t, c.now); ok {", New: "c.p.keptBy(t, c.now); ok && false {",
	},
	{
		Name: "replace-keeps-payload", What: "A replaced task keeps its old payload.", File: "core/memstore/submit.go",
		Old: "	t.Submission, t.state, t.pulse = sub, state, nil\n", New: "	sub.Body = t.Body\n	t.Submission, t.state, t.pulse = sub, state, nil\n",
	},
	{
		Name: "cancel-forgotten", What: "A run ends as it likes although its task was cancelled.", File: "core/memstore/order.go",
		Old: "case t.order.op == orderCancel && r.Verb != store.VerbCancel:", New: "case t.order.op == orderCancel && r.Verb == store.VerbRelease:",
	},
	{
		Name: "group-counted-twice", What: "A completed task counts twice in its group.", File: "core/memstore/settle.go",
		Old: "		g.Completed++\n", New: "		g.Completed += 2\n",
	},
	{
		Name: "retention-not-applied", What: "Finished tasks are known for ever.", File: "core/memstore/history.go",
		Old: "if f, ok = h.records[id]; ok && f.at > now.Add(-p.store.config.Retention) {", New: "if f, ok = h.records[id]; ok {",
	},
	{
		Name: "cap-off-by-one", What: "One finished task too many is kept.", File: "core/memstore/history.go",
		Old: "if e.n > kept+slack {\n			most = kept\n", New: "if e.n > kept+slack {\n			most = kept + 1\n",
	},
	{
		Name: "resume-without-requeue", What: "A resume leaves what was put aside where it is.", File: "core/memstore/hold.go",
		Old: "	p.open = append(p.open, opened{at: now, scope: s})\n", New: "	return true\n",
	},
	{
		Name: "pause-end-without-requeue", What: "A pause that is over leaves what was put aside where it is.", File: "core/memstore/claim.go",
		Old: "			p.unhold(t.scope, now)\n", New: "			p.forget(t.scope)\n",
	},
	{
		Name: "crash-not-counted", What: "A lost lease leaves no crash.", File: "core/memstore/suspect.go",
		Old: "	t.crashes++\n", New: "",
	},
	{
		Name: "early", What: "An agent is visited half a second early.", File: "core/memstore/partition.go",
		Old: "		s.visit = at\n		p.agenda.add(s)\n", New: "		s.visit = at - 500\n		p.agenda.add(s)\n",
	},
	{
		Name: "due-rounded-down", What: "A time between two milliseconds is rounded down.", File: "core/store/time.go",
		Old: "t.Add(time.Millisecond - 1).UnixMilli()", New: "t.UnixMilli()",
	},
	{
		Name: "order-turned", What: "Within an agent the lowest level comes first.", File: "core/memstore/visit.go",
		Old: "return level(a) < level(b)", New: "return level(a) > level(b)",
	},
	{
		Name: "throttle-debounces", What: "Further activity puts a throttled run off.", File: "core/memstore/touch.go",
		Old: "	if rule.Debounce {\n", New: "	if rule.Delay > 0 {\n		rule.MaxWait = 10 * rule.Delay\n",
	},
	{
		Name: "limit-off-by-one", What: "An agent gets one task more than the limit.", File: "core/memstore/submit.go",
		Old: "p.liveOf(t.Agent)+also.tasks >= limit", New: "p.liveOf(t.Agent)+also.tasks > limit",
	},
	{
		Name: "pause-outlives-task", What: "A pause of a task stays when the task has ended.", File: "core/memstore/partition.go",
		Old: "	p.forget(scope{kind: 't', name: t.Agent, id: t.ID})\n", New: "",
	},
	{
		Name: "stale-hint", What: "A look does not see that the next lease ends.", File: "core/memstore/look.go",
		Old: "if due == 0 || lease != 0 && lease < due {", New: "if due == 0 && lease < due {",
	},
	{
		Name: "deleted-run-goes-on", What: "A delete leaves the run its lease.", File: "core/memstore/order.go",
		Old: "			c.runs[i] = held{lost: true}\n", New: "			c.runs[i].lost = false\n",
	},
	// From here on the faults are those of the scheduler, which any store would show.
	{
		Name: "double-spawn", What: "A recurring task whose process dies while it books an occurrence books it twice.", File: "core/spawn.go",
		Old: "model.ChildID(r.claimed.ID, occurrence)\n\tsub :=", New: "model.ChildID(r.claimed.ID, s.base.StoreNow())\n\tsub :=",
	},
	{
		Name: "attempt-not-counted", What: "A failed attempt is not counted.", File: "core/internal/decide/verdict.go",
		Old: "\td.State.Attempt++\n", New: "",
	},
	{
		Name: "crash-is-failure", What: "A crash counts as a failed attempt.", File: "core/internal/decide/verdict.go",
		Old: "\t\td.State.RunCount++\n\t\td.State.ErrorCount++\n\t\td.add(run)\n", New: "\t\td.State.RunCount++\n\t\td.State.ErrorCount++\n\t\td.State.Attempt++\n\t\td.add(run)\n",
	},
	{
		Name: "retry-after-charged", What: "RetryAfter is charged at once.", File: "core/internal/decide/retryafter.go",
		Old: "if d.State.RetryAfters > kind.MaxRetryAfters {", New: "if d.State.RetryAfters > 0 {",
	},
	{
		Name: "retry-after-early", What: "RetryAfter is repeated before its time.", File: "core/internal/decide/retryafter.go",
		Old: "pause := max(asked, kind.Backoff) +", New: "pause := min(asked, kind.Backoff) +",
	},
	{
		Name: "release-charged", What: "A run that its process gives back costs an attempt.", File: "core/internal/decide/release.go",
		Old: "\tv.Settlement.State = d.State.Encode()\n}\n\n// tooLong", New: "\td.State.Attempt++\n\tv.Settlement.State = d.State.Encode()\n}\n\n// tooLong",
	},
	{
		Name: "no-stretch", What: "Failures do not stretch the interval.", File: "core/internal/decide/verdict.go",
		Old: "schedule.Stretch(d.interval(), d.State.Failures)", New: "schedule.Stretch(d.interval(), 0)",
	},
	{
		Name: "pause-late", What: "A task that keeps failing is paused one failure late.", File: "core/internal/decide/verdict.go",
		Old: "n/most > (n-justNow)/most", New: "(n-1)/most > (n-1-justNow)/most",
	},
	{
		Name: "occurrence-lost", What: "The next occurrence of a cron is passed over.", File: "core/internal/decide/occurrence.go",
		Old: "\tnext := d.after(d.answered(d.nominal()), interval)\n", New: "\tnext := d.after(d.after(d.answered(d.nominal()), interval), interval)\n",
	},
	{
		Name: "nothing-learned", What: "A pull that has got nothing asks again at once.", File: "core/learn.go",
		Old: "	t.foundNothing(r, c, sent, g, due > before && (!now || !t.atNow))\n", New: "	_, _ = before, now\n",
	},
	{
		Name: "frozen-starts", What: "A process that was frozen past its leases starts what it had claimed.", File: "core/run.go",
		Old: "		if !over {\n			r.info.Fence", New: "		if over || !over {\n			r.info.Fence",
	},
	{
		Name: "suspects-unbounded", What: "A process runs any number of tasks whose last runs died with their processes.", File: "core/round.go",
		Old: "Suspects: g.SuspectsFor(p.turn+i, len(due)),", New: "",
	},
	{
		Name: "no-notice", What: "A lease that is over is taken back at once.", File: "core/round.go",
		Old: "return stored(whole), others, noticeOf(shortest)\n", New: "return stored(whole), others, 0\n",
	},
	{
		Name: "crash-of-the-living", What: "The crashes of a process that lives stay counted.", File: "core/memstore/suspect.go",
		Old: "		if t.crashes--; t.crashes == 0 {\n			p.cleared(t)\n		}\n", New: "",
	},
	{
		Name: "crashes-off-by-one", What: "A poisonous task gets one more try.", File: "core/run.go",
		Old: "c.Crashes > p.s.config.MaxCrashes {", New: "c.Crashes > p.s.config.MaxCrashes+1 {",
	},
	{
		Name: "kind-slots-ignored", What: "The slots of a kind do not bound it.", File: "core/internal/slots/slots.go",
		Old: "\ts.ofKind[kind] = most\n", New: "\t_ = most\n",
	},
	{
		Name: "min-interval-ignored", What: "The minimum interval of a task is not kept.", File: "core/internal/decide/retryafter.go",
		Old: "if d.Body.MinInterval == 0 {\n\t\treturn 0", New: "if d.Body.MinInterval >= 0 {\n\t\treturn 0",
	},
	{
		Name: "result-lost", What: "What was kept of a task goes when it is replaced.", File: "core/internal/record/state.go",
		Old: "Runs: s.Runs, Result: s.Result,", New: "Runs: s.Runs,",
	},
	{
		Name: "failures-not-cleared", What: "A success does not clear the failures in a row.", File: "core/internal/decide/verdict.go",
		Old: "\tdefault:\n\t\td.State.Failures = 0\n\t\td.nextDue(v, d.interval())", New: "\tdefault:\n\t\td.nextDue(v, d.interval())",
	},
	// A kind would then be left for lack of time by a process that has never completed a run of
	// it.
	{
		Name: "learn-from-cut-offs", What: "Runs that were cut off are learned from.", File: "core/call.go",
		Old: "if cause == nil && c.handler != spawner && slices.Contains(outcomes, nil) {", New: "if c.handler != spawner {\n\t\t_ = slices.Contains(outcomes, nil)",
	},
	// It panics, as an earlier version did: no invariant is named for that.
	{
		Name: "release-of-nothing", What: "A release that is refused, as its task was replaced, ends the process.", File: "core/settler.go",
		Old: "\td := decide.Decision{Facts: r.facts(), Group: r.body.Group}\n", New: "\td := decide.Decision{}\n",
	},
	{
		Name: "given-up-is-kept", What: "Heartbeats extend the lease of a run that was given up.", File: "core/settler.go",
		Old: "\tp.heart.release(c)\n\ttyp := model.EventFinish", New: "\tif result.Err == nil {\n\t\tp.heart.release(c)\n\t}\n\ttyp := model.EventFinish",
	},
	{
		Name: "claims-after-stop", What: "A process that is asked to end claims on.", File: "core/pull.go",
		Old: "claiming, stop := context.WithCancel(p.ctx)", New: "claiming, stop := context.WithCancel(context.WithoutCancel(p.ctx))",
	},
	{
		Name: "timeout-ignored", What: "A handler is not told that its time is up.", File: "core/run.go",
		Old: "func() { c.cancel(ErrTimeout) }", New: "func() {}",
	},
	{
		Name: "cancel-not-told", What: "A run is not told that its task was cancelled.", File: "core/heart.go",
		Old: "		if len(r.call.runs) == 1 {\n			r.call.cancel(cause)\n		}\n", New: "		_ = cause\n",
	},
	// From here on the faults are in scripts, and are tried with a Redis. Several have
	// counterparts above, as both stores have to give the same answers.
	{
		Name: "lua-lease-not-extended", What: "A script answers a heartbeat, and the lease ends all the same.", File: "core/redisstore/scripts/extend.lua",
		Old: "local till = now + tonumber(lease)", New: "local till = now + tonumber(lease) * 0",
	},
	{
		Name: "lua-nonce-ignored", What: "A script takes other tasks when a claim is repeated.", File: "core/redisstore/scripts/claim.lua",
		Old: "if before then\nlocal found", New: "if before and limit < 0 then\nlocal found",
	},
	{
		Name: "lua-hold-not-looked-at", What: "A script takes all although everything is paused.", File: "core/redisstore/scripts/claim.lua",
		Old: "local HOLDS, ORDERS = redis.call('EXISTS', base .. 'holds') == 1,", New: "local HOLDS, ORDERS = false,",
	},
	{
		Name: "lua-replacement-early", What: "A replaced task is due at once when its run ends.", File: "core/redisstore/scripts/settle.lua",
		Old: "due = tonumber(sub(order, 2, 14))\n", New: "due = now\n",
	},
	{
		Name: "lua-group-counted-twice", What: "A script counts the end of a task twice in its group.", File: "core/redisstore/scripts/settle.lua",
		Old: "groups[group][verb] = groups[group][verb] + 1", New: "groups[group][verb] = groups[group][verb] + 2",
	},
	// Found by histories of real processes, and kept here since.
	{
		Name: "run-now-while-stopped", What: "A task is told to run while everything is paused, and waits silently.", File: "core/memstore/order.go",
		Old: "	case p.held(scope{kind: '*'}, now):\n		return store.Effect{Code: store.EffectStopped}\n", New: "",
	},
	{
		Name: "lua-pause-moves", What: "A pause that is given again does not begin again.", File: "core/redisstore/scripts/hold.lua",
		Old: "local since = command == 'prolong' and lasting(old)", New: "local since = lasting(old)",
	},
	{
		Name: "lua-crash-keeps-count", What: "A script does not count tasks that it takes back.", File: "core/redisstore/scripts/expired.lua",
		Old: "recovered = recovered + 1\n", New: "recovered = recovered\n",
	},
	{
		Name: "lua-progress-lost", What: "A script drops the progress that comes with a heartbeat.", File: "core/redisstore/scripts/extend.lua",
		Old: "redis.call('HSET', KEYS[2], ref, state)\n", New: "",
	},
	// From here on the faults are in the plain scripts, and in what becomes of an agent that gets queues.
	{
		Name: "plain-claim-holds", What: "A plain claim takes what is paused by itself, or whose agent or kind is.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if not per[kind] or held and (held[agent] or held[ref] or held_kinds[kind]) then", New: "if not per[kind] then",
	},
	{
		Name: "plain-claim-nonce", What: "A plain claim that is repeated takes other tasks.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: " or redis.call('HEXISTS', KEYS[4], 'n' .. ARGV[1]) == 1 then", New: " then",
	},
	{
		Name: "plain-claim-leaves", What: "A plain claim leaves the first task that it takes in the agenda.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "redis.call('ZREM', KEYS[1], unpack(gone))", New: "redis.call('ZREM', KEYS[1], '', unpack(gone, 2))",
	},
	{
		Name: "plain-claim-leases-one", What: "A plain claim leases the first of its tasks alone.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "string.rep('0', n)", New: "string.rep('0', 1)",
	},
	{
		Name: "plain-claim-second", What: "A plain claim gives the second task of an agent with few as the first.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "lives[at_tasks[k]], refs[at_tasks[k]] = live, tasks[k]", New: "lives[at_tasks[k]], refs[at_tasks[k]] = lives[at_tasks[k] - 1] or live, refs[at_tasks[k] - 1] or tasks[k]",
	},
	{
		Name: "plain-claim-kinds", What: "A plain claim takes tasks that nobody has a handler for.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "if not per[kind] or held and", New: "per[kind] = per[kind] or 0\nif held and",
	},
	{
		Name: "plain-claim-hint", What: "After a plain claim nobody knows when its lease ends.", File: "core/redisstore/scripts/plainclaim.lua",
		Old: "then hint = lease end", New: "then hint = task end",
	},
	{
		Name: "plain-settle-marks", What: "A plain settlement takes a run that lost its lease.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "if all[at] ~= 48 then return ODD end", New: "if not all[at] then return ODD end",
	},
	{
		Name: "plain-settle-open", What: "A plain settlement does not close the claim.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "if open == 0 then closed", New: "if open < 0 then closed",
	},
	{
		Name: "plain-settle-name", What: "A plain settlement leaves the name of a task that has ended with its agent.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: " .. sub(value, 4, from - 1) .. sub(value, from + #name) end", New: " .. sub(value, 4) end",
	},
	{
		Name: "plain-settle-member", What: "What is due again waits at the place of the first task of its agent.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "or sub(values[agent], 6, 12) ~= sub(place, 2)) then", New: ") then",
	},
	{
		Name: "plain-settle-orders", What: "A plain settlement does not see what was ordered.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "{ 'orders', 'groups',", New: "{ 'groups',",
	},
	{
		Name: "plain-settle-records", What: "A plain settlement drops the earlier records of an agent.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "elseif old then\n", New: "elseif old == '' then\n",
	},
	{
		Name: "plain-settle-history", What: "A plain settlement keeps no record of an agent's second end.", File: "core/redisstore/scripts/plainsettle.lua",
		Old: "histories[#histories + 1] = i\n", New: "",
	},
	{
		Name: "plain-submit-finished", What: "A plain submit does not see that the id has ended.", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "elseif kept and sub(kept, 3, 2 + #id) == id then", New: "elseif kept and #id == 0 then",
	},
	{
		Name: "plain-submit-history", What: "A plain submit does not look for the id among several that have ended.", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "unpack(names))) do\nlocal id = ", New: "unpack(names))) do\nif kept == '*' then kept = false end\nlocal id = ",
	},
	{
		Name: "plain-submit-hint", What: "A plain submit does not tell that something is due earlier.", File: "core/redisstore/scripts/plainsubmit.lua",
		Old: "if not ms or ms > first then", New: "if not ms then",
	},
	{
		Name: "spread-loses", What: "A task that waits is lost when its agent gets queues.", File: "core/redisstore/scripts/tasks.lua",
		Old: "if due and names_[i + 1] ~= without then\nqueue(agent, level, names_[i] .. names_[i + 1], due)", New: "if due and names_[i + 1] ~= without then",
	},
	{
		Name: "spread-late", What: "An agent that gets queues is visited no earlier than its first task was due.", File: "core/redisstore/scripts/tasks.lua",
		Old: "agenda_adds[#agenda_adds + 1] = due\nagenda_adds[#agenda_adds + 1] = agent\nend", New: "end",
	},
	{
		Name: "spread-keeps-memory", What: "An agent that gets queues keeps the places that its tasks had in the agenda.", File: "core/memstore/submit.go",
		Old: "	for _, t := range a.tasks {\n		p.agenda.remove(t.entry)\n	}\n", New: "",
	},
}
