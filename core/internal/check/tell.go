package check

// Callbacks that are no URL: the signal that the end of a task sends.

import "strings"

// KindTell is the kind of the tasks that send a signal when another task has ended. It is reserved, and each process that runs anything handles it.
const KindTell = "duly.tell"

// KindWatch is the kind of the watches of tasks that are to succeed within a time, and of the signals that say that one has not. It is reserved and handled as
// KindTell is; it is no KindTell, as versions that know no watches would give them up.
const KindWatch = "duly.watch"

// Everywhere are the kinds that each process handles that runs anything.
var Everywhere = []string{KindTell, KindWatch}

// What such a callback begins with: behind it is the key of the signal that the agent of the task gets.
const (
	TellTask  = "signal:"       // when the task has ended
	TellGroup = "signal-group:" // when its group has no live task left
)

// LateTask is what the on_late of a task begins with that has another one submitted, of the kind behind it.
const LateTask = "task:"

// Tells is the key of the signal that a callback asks for, and whether its group has to have ended; empty for a URL.
func Tells(callback string) (key string, group bool) {
	if key, group = strings.CutPrefix(callback, TellGroup); group {
		return key, true
	}
	if key, ok := strings.CutPrefix(callback, TellTask); ok {
		return key, false
	}
	return "", false
}
