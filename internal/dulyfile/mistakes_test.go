package dulyfile_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// A mistake in the file is an error that names the place, in one line.
func TestMistakesInTheFile(t *testing.T) {
	t.Parallel()
	const note = "handlers:\n  note: { log: {} }\ntasks:\n"
	for text, want := range map[string]string{
		"handlers: {a: [}":      "duly.yaml:1: is not YAML: did not find expected node content",
		"- a":                   "duly.yaml:1: must be an object (key: value)",
		"a: 1\n---\nb: 1":       "duly.yaml: contains more than one YAML document",
		"redis: a\nhandler: {}": "duly.yaml:2: handler: unknown key; expected one of concurrency, handlers, http, kept, kept_bytes, lease, max_abandoned, max_bytes, max_crashes, max_tasks, name",
		"serial: kind":          "duly.yaml:1: serial: must be task or agent, not \"kind\"",
		"redis: a\nredis: b":    "duly.yaml:2: redis: is given twice",
		"redis: [a]":            "duly.yaml:1: redis: must be a string",
		"partitions: many":      "duly.yaml:1: partitions: must be a whole number",
		"partitions: 3":         "duly.yaml:1: partitions: must be a power of two",
		"retention: 7":          "duly.yaml:1: retention: must be a duration such as 90s or 1h30m",
		"retention: 59s":        "duly.yaml:1: retention: must be at least 1m0s, not 59s",
		"kept: -1":              "duly.yaml:1: kept: must be at least 1, not -1",
		"kept: all":             "duly.yaml:1: kept: must be a whole number",
		"kept_bytes: 10":        "duly.yaml:1: kept_bytes: must be at least 1024, not 10",
		"max_bytes: -1":         "duly.yaml:1: max_bytes: must be at least 1024, not -1",
		"max_tasks: -1":         "duly.yaml:1: max_tasks: must be at least 1, not -1",
		"concurrency: -1":       "duly.yaml:1: concurrency: must be between 1 and 100000, not -1",
		"max_crashes: -1":       "duly.yaml:1: max_crashes: must be at least 1, not -1",
		"lease: 1ms":            "duly.yaml:1: lease: must be between 100ms and 1h0m0s, not 1ms",
		"lease: 5":              "duly.yaml:1: lease: must be a duration such as 90s or 1h30m",
		"handlers: [a]":         "duly.yaml:1: handlers: must be an object (key: value)",
		"handlers:\n  note: {}": "duly.yaml:2: handlers.note: must have exactly one of log, exec and webhook, not 0",
		"handlers:\n  note: { log: {}, exec: [sh] }":                        "duly.yaml:2: handlers.note: must have exactly one of log, exec and webhook, not 2",
		"handlers:\n  note: { log: {}, timout: 5s }":                        "duly.yaml:2: handlers.note.timout: unknown key; expected one of",
		"handlers:\n  note: { log: { level: 1 } }":                          "duly.yaml:2: handlers.note.log.level: unknown key; expected one of",
		"handlers:\n  note:\n    log: {}\n    timeout: soon":                "duly.yaml:4: handlers.note.timeout: must be a duration",
		"handlers:\n  note:\n    log: {}\n    timeout: -5s":                 "duly.yaml:4: handlers.note.timeout: must not be negative, not -5s",
		"handlers:\n  note:\n    lease: 2h\n    log: {}":                    "duly.yaml:3: handlers.note.lease: must be between 100ms and 1h0m0s, not 2h0m0s",
		"handlers:\n  note:\n    log: {}\n    max_attempts: -1":             "duly.yaml:4: handlers.note.max_attempts: must be between 1 and 1000, not -1",
		"handlers:\n  note:\n    log: {}\n    backoff: 1h":                  "duly.yaml:3: handlers.note: max_backoff must be at least the backoff (1h0m0s), not 5m0s",
		"handlers:\n  note: { log: {}, lease: 0s }":                         "duly.yaml:2: handlers.note.lease: must be longer than 0s",
		"handlers:\n  note: { log: {}, max_attempts: 0 }":                   "duly.yaml:2: handlers.note.max_attempts: must be at least 1, not 0",
		"handlers:\n  note: { log: {}, max_backoff: 0s }":                   "duly.yaml:2: handlers.note.max_backoff: must be longer than 0s",
		"handlers:\n  note: { log: {}, activity: { dimensions: 0 } }":       "duly.yaml:2: handlers.note.activity.dimensions: must be at least 1, not 0",
		"handlers:\n  note: { log: {}, activity: { mode: '' } }":            "duly.yaml:2: handlers.note.activity.mode: must not be empty",
		"handlers:\n  x: { webhook: 'https://a.example/', secret_env: '' }": "duly.yaml:2: handlers.x.secret_env: must not be empty",
		"urgent_slots: -1":                          "duly.yaml:1: urgent_slots: must not be negative, not -1",
		"concurrency: 3\nurgent_slots: 3":           "duly.yaml:2: urgent_slots: must be less than the concurrency (3), not 3",
		"max_abandoned: 0":                          "duly.yaml:1: max_abandoned: must be at least 1, not 0",
		"max_abandoned: -1":                         "duly.yaml:1: max_abandoned: must be at least 1, not -1",
		"name: ''":                                  "duly.yaml:1: name: must not be empty",
		"handlers:\n  note: { log: {}, slots: 0 }":  "duly.yaml:2: handlers.note.slots: must be at least 1, not 0",
		"handlers:\n  note: { log: {}, slots: -2 }": "duly.yaml:2: handlers.note.slots: must not be negative, not -2",
		"concurrency: 0":                            "duly.yaml:1: concurrency: must be at least 1, not 0",
		"partitions: 0":                             "duly.yaml:1: partitions: must be at least 1, not 0",
		"max_crashes: 0":                            "duly.yaml:1: max_crashes: must be at least 1, not 0",
		"lease: 0s":                                 "duly.yaml:1: lease: must be longer than 0s",
		"redis: ''":                                 "duly.yaml:1: redis: must not be empty",
		"prefix: ''":                                "duly.yaml:1: prefix: must not be empty",
		note + "  - { agent: a, id: i, kind: note, every: 0s }":                                       `duly.yaml:4: tasks[0].every: must be longer than "0s"`,
		note + "  - { agent: a, id: i, kind: note, cron: '' }":                                        "duly.yaml:4: tasks[0].cron: must not be empty",
		note + "  - { agent: a, id: i, kind: note, level: 0 }":                                        "duly.yaml:4: tasks[0].level: must be 1, 2 or 3, not 0",
		note + "  - { agent: a, id: '', kind: note }":                                                 "duly.yaml:4: tasks[0].id: must not be empty",
		note + "  - { agent: \"a\\ud800\", id: i, kind: note }":                                       "duly.yaml:4: is not YAML: found invalid Unicode character escape code",
		"handlers:\n  note: { log: {}, spread: soon }":                                                "duly.yaml:2: handlers.note.spread: must be a duration",
		"handlers:\n  note:\n    log: {}\n    catch_up: -1":                                           "duly.yaml:4: handlers.note.catch_up: must not be negative, not -1",
		"handlers:\n  note: { log: {}, disabled: maybe }":                                             "duly.yaml:2: handlers.note.disabled: must be true or false",
		"handlers:\n  note: { log: {}, pause_after_failures: x }":                                     "duly.yaml:2: handlers.note.pause_after_failures: must be a whole number",
		"handlers:\n  note: { log: {}, activity: }":                                                   "duly.yaml:2: handlers.note.activity: must be an object, such as { quiet: 30m }",
		"handlers:\n  note: { log: {}, activity: { silent: 1m } }":                                    "duly.yaml:2: handlers.note.activity.silent: unknown key; expected one of delay, dimensions",
		"handlers:\n  note: { log: {}, activity: { quiet: 1m, delay: 1m } }":                          "duly.yaml:2: handlers.note.activity.quiet: excludes a delay",
		"handlers:\n  note:\n    log: {}\n    activity:\n      mode: wild":                            `duly.yaml:5: handlers.note.activity.mode: must be "throttle" or "debounce", not "wild"`,
		"handlers:\n  note:\n    log: {}\n    activity:\n      max_wait: 1m":                          `duly.yaml:5: handlers.note.activity.max_wait: needs a quiet time and must be between that and`,
		"handlers:\n  note:\n    log: {}\n    activity:\n      delay: 1m\n      level: 4":             "duly.yaml:6: handlers.note.activity.level: must be 1, 2 or 3, not 4",
		"handlers:\n  note: { log: {}, activity: { dimensions: 4 } }":                                 "duly.yaml:2: handlers.note.activity.dimensions: must be 1, 2 or 3, not 4",
		"handlers:\n  note: { log: {}, disabled: true }\ntasks:\n  - { agent: a, id: i, kind: note }": `duly.yaml:4: tasks[0].kind: kind "note" is disabled in this file`,
		note + "  - { agent: a, id: i, kind: note, every: 1h, pause_after_failures: often }":          "duly.yaml:4: tasks[0].pause_after_failures: must be a whole number",
		note + "  - { agent: a, id: i, kind: note, every: 1h, overlap: skip }":                        "duly.yaml:4: tasks[0].overlap: needs cron",
		note + "  - { agent: a, id: i, preset: nothing }":                                             `duly.yaml:4: tasks[0].preset: "nothing" is unknown`,
		note + "  - { agent: a, id: i, preset: memory.rollup_day }":                                   `duly.yaml:4: tasks[0].preset: kind "memory.rollup_day" has no handler in this file; handlers: note`,
		"handlers:\n  a b: { log: {} }":                                                               `duly.yaml:2: handlers.a b: "a b" has the character ' '`,
		"handlers:\n  note: { fax: 123 }":                                                             "duly.yaml:2: handlers.note.fax: unknown key; expected one of",
		"handlers:\n  x: { exec: sh }":                                                                "duly.yaml:2: handlers.x.exec: must be an array of strings",
		"handlers:\n  x: { exec: [] }":                                                                "duly.yaml:2: handlers.x.exec: needs a program",
		"handlers:\n  x: { exec: [no-such-program] }":                                                 "duly.yaml:2: handlers.x.exec: names the program \"no-such-program\", which was not found",
		"handlers:\n  x: { exec: [sh, [a]] }":                                                         "duly.yaml:2: handlers.x.exec[1]: must be a string",
		"handlers:\n  x: { log: {}, secret_env: A }":                                                  "duly.yaml:2: handlers.x: has secret_env, insecure or allow_private",
		"handlers:\n  x: { webhook: nowhere }":                                                        "duly.yaml:2: handlers.x.webhook: must be an http or https URL",
		"handlers:\n  x: { webhook: 'http://a.example/' }":                                            "duly.yaml:2: handlers.x.webhook: must be https",
		"handlers:\n  x: { webhook: 'ftp://a.example/' }":                                             "duly.yaml:2: handlers.x.webhook: must be an http or https URL",
		"handlers:\n  x: { webhook: 'https://a.example/', secret_env: NOT_SET }":                      "the environment variable NOT_SET, named by secret_env, is not set",
		note + "  - { id: i, kind: note }":                                                            "duly.yaml:4: tasks[0]: agent is required",
		note + "  - { agent: a, kind: note }":                                                         "duly.yaml:4: tasks[0]: id is required",
		note + "  - { agent: a, id: i }":                                                              `duly.yaml:4: tasks[0]: kind is required, or a preset`,
		note + "  - { agent: a, id: i, kind: mail }":                                                  `duly.yaml:4: tasks[0].kind: kind "mail" has no handler in this file; handlers: note`,
		note + "  - { agent: a, id: i, kind: note, evry: 5s }":                                        "duly.yaml:4: tasks[0].evry: is not a field of a task",
		note + "  - agent: a\n    id: i\n    kind: note\n    every: 1ms":                              "duly.yaml:7: tasks[0].every: must be between 1s and",
		note + "  - agent: a\n    id: i\n    kind: note\n    every: soon":                             "duly.yaml:7: tasks[0].every: must be a duration",
		note + "  - { agent: a, id: i, kind: note, level: high }":                                     "duly.yaml:4: tasks[0].level: must be 1, 2 or 3",
		note + "  - { agent: a, id: i, kind: note, payload: { 1: a } }":                               "duly.yaml:4: tasks[0].payload: cannot be converted to JSON",
		note + "  - { agent: [a], id: i, kind: note }":                                                "duly.yaml:4: tasks[0].agent: must be a string",
		note + "  - { agent: a, agent_id: a, id: i, kind: note }":                                     "duly.yaml:4: tasks[0].agent_id: is given twice",
		note + "  - { agent: \"a\\x01\", id: i, kind: note }":                                         "duly.yaml:4: tasks[0].agent: has the control character U+0001",
		note + "  - { agent: a, id: i, kind: note }\n  - { agent: a, id: i, kind: note }":             "duly.yaml:5: tasks[1].id: another task of this agent above has the same id",
		note + "  note: 1": "duly.yaml:4: tasks: must be an array",
	} {
		_, err := dulyfile.Parse(t.Context(), "duly.yaml", []byte(text))
		require.ErrorAs(t, err, new(*dulyfile.Error), text)
		assert.Contains(t, err.Error(), want, text)
		assert.True(t, strings.HasPrefix(err.Error(), "duly.yaml:"), err.Error())
	}
}
