// Package cli is the program duly: its commands, what they print, and the process that runs them.
package cli

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"

	"github.com/seed-6f6f2c11/duly/internal/cli/private"
)

// Main runs one command line with the standard input and output of this process, and returns its exit code. The version is the
// build's; if it is empty, the one that the module was installed with. The first signal to stop ends the command gracefully,
// the second one ends the process at once.
func Main(ctx context.Context, version string, args []string) int {
	// go-redis would print its own lines between duly's.
	logging.Disable() // what goes wrong with Redis is in our own errors
	p := &process{stdout: os.Stdout, stderr: os.Stderr, stdin: os.Stdin, version: version}
	if err := private.Hide(); err != nil { // before anything is started that could look
		p.say("duly: warning: programs started by handlers can read this process's environment, as the kernel refuses to hide it: " + err.Error())
	}
	ctx, stop := p.interruptible(ctx)
	defer stop()
	return p.run(ctx, args)
}
