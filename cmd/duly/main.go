// Command duly runs due tasks for AI agents: as a daemon with an HTTP API, as one pull, and as a command line to submit
// tasks and see what became of them.
package main

import (
	"context"
	"os"

	"github.com/redis/go-redis/v9/logging"
)

// version is set by the linker; see the Makefile.
var version string

func main() {
	logging.Disable() // what goes wrong with Redis is in our own errors
	p := &process{stdout: os.Stdout, stderr: os.Stderr, stdin: os.Stdin}
	if err := hide(); err != nil { // before anything is started that could look
		p.say("duly: warning: programs of handlers can read this process's environment, as the kernel refuses to hide it: " + err.Error())
	}
	ctx, stop := p.interruptible(context.Background())
	code := p.run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
