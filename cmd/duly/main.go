// Command duly runs due tasks for AI agents: as a daemon with an HTTP API, as one pull, and as a command line to submit
// tasks and see what became of them.
package main

import (
	"context"
	"os"

	"github.com/seed-6f6f2c11/duly/internal/cli"
)

// version is set by the linker; see the Makefile.
var version string

func main() {
	os.Exit(cli.Main(context.Background(), version, os.Args[1:]))
}
