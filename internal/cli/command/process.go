package command

// The process: what it reads and writes, and signals.

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/seed-6f6f2c11/duly/handlers/exec"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// Process is one run of the program: what it reads and writes, and the children it has started.
// There is one in a program, and one for each command line in a test.
type Process struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Version        string // of the build
	// children are programs that handlers have started: none of them may outlive the process.
	Children exec.Children
}

// Say tells people something that is no answer.
// Answers go to stdout, so that a program can read them undisturbed; everything else comes here.
func (p *Process) Say(line string) { _, _ = fmt.Fprintln(p.Stderr, table.Plain(line)) }

// Interruptible is a context that is done at the first signal to stop. The second one ends the process at once, with its
// children.
// A user who presses Ctrl-C twice wants it to end now, also if a handler does not let go.
func (p *Process) Interruptible(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	// Room for both signals, as Notify drops a signal that the channel has no room for.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		p.Children.Kill()
		os.Exit(exit.Failed)
	}()
	return ctx, cancel
}

// VersionOr is a version of the build, else the version of the module, as go install knows it.
// An untagged build of a checkout has neither, and says "devel".
func VersionOr(version string) string {
	if version != "" {
		return version
	}
	// Go sets "(devel)" where it knows no version.
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// EndProgress clears the progress line.
// Forty columns are more than any line of progress has.
func (p *Process) EndProgress() {
	if table.Terminal(p.Stderr) {
		_, _ = fmt.Fprint(p.Stderr, "\r"+strings.Repeat(" ", 40)+"\r")
	}
}
