package exec

import (
	"errors"
	"os"
	"os/exec"
	"sync"

	"github.com/seed-6f6f2c11/duly/core"
)

// Children are the programs that run. The zero value has none.
type Children struct {
	mu     sync.Mutex
	groups map[*group]struct{}
	ended  chan struct{} // closed when the next of them ends
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
func (c *Children) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for g := range c.groups {
		g.kill()
	}
}

func (c *Children) add(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.groups == nil {
		c.groups, c.ended = map[*group]struct{}{}, make(chan struct{})
	}
	c.groups[g] = struct{}{}
}

func (c *Children) remove(g *group) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, g)
	close(c.ended)
	c.ended = make(chan struct{})
}

// run runs a program in a process group of its own and returns when it has ended. What else is left of the group is killed
// then: nothing outlives the run of its task.
func (c *Children) run(cmd *exec.Cmd, said *output) error {
	pipes, err := listen(said)
	if err != nil {
		return err
	}
	defer pipes.drain()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = pipes.ends[0], pipes.ends[1], pipes.ends[2:]
	g := newGroup()
	g.take(cmd)
	err = cmd.Start()
	closeAll(pipes.ends)
	if err != nil {
		g.end()
		return err
	}
	g.begun(cmd)
	c.add(g)
	defer c.remove(g)
	defer g.end()
	if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
		err = nil // it succeeded, and left behind somebody who does not read its standard input
	}
	return err
}

// pipes are what a program's output comes through.
type pipes struct {
	starts, ends []*os.File
	reading      sync.WaitGroup
}

// listen reads what a program will say.
func listen(said *output) (*pipes, error) {
	p := &pipes{}
	for _, read := range said.readers() {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(p.ends)
			p.drain()
			return nil, err
		}
		p.starts, p.ends = append(p.starts, r), append(p.ends, w)
		p.reading.Go(func() { read(r) })
	}
	return p, nil
}

// drain reads what is left to be read. A process that left the group may still hold an end: nobody waits for it.
func (p *pipes) drain() {
	for _, r := range p.starts {
		_ = r.SetReadDeadline(core.SystemClock{}.Now().Add(drainWithin))
	}
	p.reading.Wait()
	closeAll(p.starts)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}
