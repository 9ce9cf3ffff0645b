package exec

// The programs under way: how they are started, read, and ended with their host.

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"sync"

	"github.com/seed-6f6f2c11/duly/core"
)

// Children are the programs that run. The zero value has none.
// A host shares one among all handlers, so that it can end them together.
type Children struct {
	mu     sync.Mutex
	groups map[*group]bool // whether they were killed
	// It is replaced each time, so that Wait wakes at each end.
	ended chan struct{} // closed when the next of them ends
}

// Wait waits until no program runs: after a host has given up their runs they have a last chance to end by themselves, which
// is four seconds long.
func (c *Children) Wait() {
	for {
		c.mu.Lock()
		n, ended := len(c.groups), c.ended
		c.mu.Unlock()
		if n == 0 {
			return
		}
		<-ended
	}
}

// Kill ends all programs at once, and what they have started.
// The host calls it when it has no time left, just before it ends itself; Wait is for when it has. That is no failure of the
// runs, so that none of them returns before its context is done: with the host the lease goes, and the task starts elsewhere.
func (c *Children) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.groups {
		c.groups[g] = true
		g.kill()
	}
}

// add notes a program that is about to start: one that starts while all are killed is killed too.
func (c *Children) add(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups, c.ended = map[*group]bool{}, make(chan struct{})
	}
	c.groups[g] = false
}

// begun notes that a program has started. Without a guard its group has an id only now.
func (c *Children) begun(g *group, cmd *exec.Cmd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	g.begun(cmd)
	if c.groups[g] {
		g.kill()
	}
}

// remove records that a program has ended, and wakes Wait. It reports whether Kill has ended it.
func (c *Children) remove(g *group) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	killed := c.groups[g]
	delete(c.groups, g)
	close(c.ended)
	c.ended = make(chan struct{})
	return killed
}

// run runs a program in a process group of its own and returns when it has ended. What else is left of the group is killed
// then: nothing outlives the run of its task.
func (c *Children) run(ctx context.Context, cmd *exec.Cmd, said *output) error {
	g := newGroup()
	c.add(g)
	err := c.runIn(g, cmd, said)
	if c.remove(g) {
		<-ctx.Done()
	}
	return err
}

// runIn runs a program in a group. Output that is still on its way at its end is read first, for a second at most.
func (c *Children) runIn(g *group, cmd *exec.Cmd, said *output) error {
	pipes, err := listen(said)
	if err != nil {
		return err
	}
	defer pipes.drain()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = pipes.ends[0], pipes.ends[1], pipes.ends[2:]
	g.take(cmd)
	defer g.end() // also for a program that could not be started: its guard runs already
	err = cmd.Start()
	// These ends belong to the program now: kept open here, reading would never end.
	closeAll(pipes.ends)
	if err != nil {
		return err
	}
	c.begun(g, cmd)
	if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and left a process behind that does not read its standard input
	}
	return err
}

// pipes are what a program's output comes through.
// They are pipes of our own, as those of os/exec end only when every process that has them does.
type pipes struct {
	said         *output
	starts, ends []*os.File
	reading      sync.WaitGroup
}

// listen reads what a program will say.
func listen(said *output) (*pipes, error) {
	p := &pipes{said: said}
	answers, err := said.answering()
	if err != nil {
		return nil, err
	}
	for _, read := range said.readers() {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(p.ends, answers)) // closing nil does no harm
			p.drain()
			return nil, err
		}
		p.starts, p.ends = append(p.starts, r), append(p.ends, w)
		p.reading.Go(func() { read(r) })
	}
	if answers != nil {
		p.ends = append(p.ends, answers)
	}
	return p, nil
}

// drain reads the rest of the output. A process that left the group may still hold a pipe open: drain does not wait for it.
func (p *pipes) drain() {
	for _, r := range p.starts {
		_ = r.SetReadDeadline(core.SystemClock{}.Now().Add(drainWithin))
	}
	p.reading.Wait()
	closeAll(p.starts)
	p.said.hush()
}

// closeAll closes files; a second close does no harm.
func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
