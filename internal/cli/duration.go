package cli

// Flags that take durations.

import (
	"time"

	"github.com/spf13/pflag"

	"github.com/seed-6f6f2c11/duly/core/schedule"
)

// duration is a flag that is written as the file and the API have it: also with days, and as ISO 8601 does.
type duration time.Duration

// durationVar declares one.
func durationVar(flags *pflag.FlagSet, into *time.Duration, name string, def time.Duration, usage string) {
	*into = def
	flags.Var((*duration)(into), name, usage)
	if def == 0 {
		flags.Lookup(name).DefValue = "" // the usage says what none means
	}
}

// Set reads the value.
func (d *duration) Set(text string) error {
	read, err := schedule.ParseDuration(text)
	if err == nil {
		*d = duration(read)
	}
	return err
}

// String is the value as Go writes it.
func (d *duration) String() string { return time.Duration(*d).String() }

// Type is what the usage calls it.
func (*duration) Type() string { return "duration" }
