package main

// The guards of alarms, signals and callbacks.

import "github.com/seed-6f6f2c11/duly/internal/sow"

// hostGuards are those of promises 40 to 42.
var hostGuards = []guard{
	{"40", sow.Fault{
		Name: "alarm-booked", What: "an alarm is set for each pull, although one is booked", File: "core/memstore/booking.go",
		Old: "b.At != 0 && out.By == 0", New: "b.At != 0",
	}, inCore, "TestOneAlarmIsBooked$"},
	{"40", sow.Fault{
		Name: "alarm-next", What: "a pull books no alarm for what is due next", File: "core/alarm_pull.go",
		Old: "due := base.Earlier(store.MillisOf(r.NextDueAt), made)", New: "due := made",
	}, inCore, "TestOneAlarmIsBooked$"},
	{"40", sow.Fault{
		Name: "alarm-running", What: "no alarm is booked while a run takes long", File: "core/alarm_pull.go",
		Old: "if !p.books() || !p.claimed {", New: "if !p.books() || p.claimed {",
	}, inCore, "TestAlarmsWhileARunTakesLong$"},
	{"40", sow.Fault{
		Name: "alarm-guard", What: "a pull starts work without a guard", File: "core/alarm_pull.go",
		Old: "if !p.books() || p.guarded {", New: "if !p.guarded {",
	}, inCore, "TestAPullBooksAGuardBeforeItStartsWork$"},
	{"40", sow.Fault{
		Name: "alarm-believed", What: "an alarm is known before the clock has confirmed it", File: "core/alarm.go",
		Old: "\ts.alarm.Confirmed(booked.Now, booked.By)\n\tif booked.Set", New: "\ts.alarm.Confirmed(booked.Now, booked.Set)\n\tif booked.Set",
	}, inCore, "TestAClockThatHangs$"},
	{"40", sow.Fault{
		Name: "alarm-own-time", What: "an alarm is booked with the context of the caller", File: "core/alarm.go",
		Old: "context.WithTimeout(context.WithoutCancel(ctx), patience)", New: "context.WithTimeout(ctx, patience)",
	}, inCore, "TestAnAlarmHasItsOwnTime$"},
	{"40", sow.Fault{
		Name: "alarm-gathers", What: "each submit that is due earlier sets an alarm", File: "core/memstore/booking.go",
		Old: "now.Sub(of.last) < store.GatherFor {", New: "now.Sub(of.last) < 0 {",
	}, inCore, "TestSubmitsThatAreDueEverEarlier$"},
	{"41", sow.Fault{
		Name: "signal-twice", What: "a task is told again", File: "core/memstore/signals.go",
		Old: "if t.told != nil || t.claim != nil ||", New: "if t.claim != nil ||",
	}, inMemory, "TestContract$/a_signal_to_many"},
	{"41", sow.Fault{
		Name: "signal-early", What: "a signal that comes first is lost", File: "core/redisstore/scripts/signals.lua",
		Old: "if said and tonumber(sub(said, 1, 13)) > now then", New: "if said and tonumber(sub(said, 1, 13)) < now then",
	}, onRedis, "TestContract$/a_signal_that_comes_first"},
	{"41", sow.Fault{
		Name: "answer-late", What: "the answer to a question is told to another wait", File: "core/redisstore/scripts/signal.lua",
		Old: "(only == '' or sub(all[i + 1], 2) == ARGV[8])", New: "true",
	}, onRedis, "TestContract$/a_signal_to_one_wait"},
	{"41", sow.Fault{
		Name: "approval-by-anybody", What: "a run approves what waits for an approval", File: "core/signal.go",
		Old: "By: origin.By.String()}, false", New: "By: origin.By.String()}, approves",
	}, inCore, "TestOnlyAnApprovalCounts$"},
	{"41", sow.Fault{
		Name: "signal-heard", What: "what a run was told is gone when it is repeated", File: "core/internal/decide/verdict.go",
		Old: "\t\tv.Retried = true\n\t\td.sameOccurrence()", New: "\t\tv.Retried = true\n\t\td.heard(v)\n\t\td.sameOccurrence()",
	}, inCore, "TestWhatWasHeardIsNotLost$"},
	{"41", sow.Fault{
		Name: "signal-wakes", What: "who sleeps is not woken by a signal", File: "core/redisstore/scripts/signal.lua",
		Old: "announce(now)", New: "announce(now, true)",
	}, onRedis, "TestContract$/a_signal_wakes"},
	{"42", sow.Fault{
		Name: "callback-foretold", What: "an end is stored before its callback", File: "core/foretell.go",
		Old: "		if !r.tells() {\n			continue", New: "		if r.tells() || !r.tells() {\n			continue",
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-looks", What: "a callback is delivered although nothing has ended like that", File: "core/callback.go",
		Old: "if of.Dropped || err == nil && rec.Callback == t.ID {", New: "if of.Dropped || err == nil && rec.Callback != \"\" {",
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-undone", What: "an end is undone before anybody is sure that it is told", File: "core/foretell.go",
		Old: "if !t.Status.Finished() || t.Dropped {", New: "if t.Status.Finished() || t.Dropped {",
	}, inCore, "TestEachEndIsToldWhateverDies$"},
	{"42", sow.Fault{
		Name: "callback-again", What: "a URL that is no longer allowed is called", File: "core/callback.go",
		Old: "if err := s.config.Callbacks.Check(m.URL); err != nil { // the", New: "if err := s.config.Callbacks.Check(m.URL); err == nil { // the",
	}, inCore, "TestWhatMayNotBeCalledIsRefused$"},
	{"42", sow.Fault{
		Name: "callback-owed", What: "an agent that has all the tasks it may have gets no callback", File: "core/memstore/submit.go",
		Old: "!known && !owed && p.liveOf", New: "!known && p.liveOf",
	}, inMemory, "TestContract$/what_is_owed"},
	{"42", sow.Fault{
		Name: "callback-owed-on-redis", What: "an agent that has all the tasks it may have gets no callback", File: "core/redisstore/scripts/submit.lua",
		Old: "live_count >= most and rule.name ~= 'o' then", New: "live_count >= most then",
	}, onRedis, "TestContract$/what_is_owed"},
	{"42", sow.Fault{
		Name: "callback-path", What: "a path with dots is allowed", File: "handlers/webhook/callbacks.go",
		Old: `part == "." || part == ".."`, New: `part == "."`,
	}, "handlers/webhook", "TestOnlyWhatIsAllowedMayBeCalled$"},
}
