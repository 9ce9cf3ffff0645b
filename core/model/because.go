package model

// Reasons why a task has not run.

import "time"

// Because is one reason.
type Because struct {
	Code  BecauseCode
	Text  string    // for people
	About string    // what holds the task, the same for all tasks that it holds, such as kind digest; empty if nothing beyond the task does
	Until time.Time // when it ends without a command; zero if it does not, or if that is not known
}

// BecauseCode tells reasons apart.
type BecauseCode string

// The reasons why a task does not run.
const (
	BecauseFinished  BecauseCode = "finished"     // it has ended
	BecauseRunning   BecauseCode = "in_progress"  // it runs
	BecauseEnding    BecauseCode = "ending"       // it was cancelled while it ran, and has not ended yet
	BecausePaused    BecauseCode = "paused"       // it is held
	BecauseNoHandler BecauseCode = "no_handler"   // no process that claims has a handler for its kind
	BecauseResting   BecauseCode = "resting"      // it waits for activity
	BecauseCooling   BecauseCode = "cooling_down" // it failed too often
	BecauseRetry     BecauseCode = "retry"        // its last attempt failed, or its handler asked to be called again later
	BecauseFailing   BecauseCode = "failing"      // its last occurrences failed: its interval may be stretched
	BecauseGate      BecauseCode = "gate"         // its gate said that there is nothing to do, and is asked again later
	BecauseQuiet     BecauseCode = "quiet"        // its agent has quiet hours
	BecauseManual    BecauseCode = "manual"       // it runs only by hand
	BecauseSignal    BecauseCode = "signal"       // it waits for a signal
	BecauseNotDue    BecauseCode = "not_due"      // its time has not come
	BecauseWaiting   BecauseCode = "waiting"      // it is due, and no process has claimed it yet
	BecauseBusy      BecauseCode = "busy"         // it is due, and no process that handles its kind had a free slot
	BecauseNoTime    BecauseCode = "no_time"      // it is due, and pulls had too little time for its kind
	BecauseSerial    BecauseCode = "serial"       // it is due, and another run of its agent has to end first
	BecauseLimited   BecauseCode = "limited"      // it is due, and a limit holds it back
	BecauseBudget    BecauseCode = "budget"       // it is due, and a budget that covers it is used up
	BecauseAlarm     BecauseCode = "alarm"        // its hosts are called by alarms, and none is booked for it
	BecauseSuspect   BecauseCode = "suspect"      // its last run died with its process: few such tasks run at once in a process
)
