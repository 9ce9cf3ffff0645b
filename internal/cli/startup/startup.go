// Package startup has the first collections of garbage wait while the program starts: in a command that ends within milliseconds one of them takes a
// third of its time.
package startup

import (
	"os"
	"runtime/debug"
	"time"
)

const (
	// percent is what GOGC would be: nothing is collected below 16 MiB.
	percent = 400
	// lasts is how long after the start of the program.
	lasts = time.Second
)

// usual is the percentage that counts otherwise. It is set before what other packages prepare: this one needs nearly none of them.
var usual = postpone()

func postpone() int {
	if os.Getenv("GOGC") != "" {
		return percent
	}
	return debug.SetGCPercent(percent)
}

// Ends has a program that goes on collect as usual from then on: it has to call it once. What GOGC says, if it is set, is left alone.
func Ends() {
	if usual != percent {
		time.AfterFunc(lasts, func() { debug.SetGCPercent(usual) })
	}
}
