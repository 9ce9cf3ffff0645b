package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// children are the process groups of the programs that run.
type children struct {
	mu     sync.Mutex
	groups map[int]struct{}
	none   *sync.Cond
}

func newChildren() *children {
	c := &children{groups: map[int]struct{}{}}
	c.none = sync.NewCond(&c.mu)
	return c
}

// run runs a program in a process group of its own and returns when it has ended. What else is left of the group is
// killed then: nothing outlives the run of its task.
func (c *children) run(cmd *exec.Cmd, stdout, stderr io.Writer) error {
	var copying sync.WaitGroup
	var pipes, ends []*os.File
	for _, to := range []io.Writer{stdout, stderr} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(pipes)
			closeAll(ends)
			return err
		}
		pipes, ends = append(pipes, r), append(ends, w)
		copying.Go(func() { _, _ = io.Copy(to, r) }) // what could be read counts
	}
	cmd.Stdout, cmd.Stderr = ends[0], ends[1]
	err := cmd.Start()
	closeAll(ends)
	if err == nil {
		c.add(cmd.Process.Pid)
		if err = cmd.Wait(); errors.Is(err, exec.ErrWaitDelay) {
			err = nil // it succeeded, and left behind somebody who does not read its standard input
		}
		killGroup(cmd.Process.Pid)
		c.remove(cmd.Process.Pid)
	}
	for _, r := range pipes { // a process that left the group may still hold the other end
		_ = r.SetReadDeadline(time.Now().Add(drainWithin))
	}
	copying.Wait()
	closeAll(pipes)
	return err
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close()
	}
}

func (c *children) add(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.groups[pid] = struct{}{}
}

func (c *children) remove(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.groups, pid)
	if len(c.groups) == 0 {
		c.none.Broadcast()
	}
}

// wait waits until no program runs: after the daemon has given up their runs they have a last chance to end by
// themselves, which killAfter bounds.
func (c *children) wait() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.groups) > 0 {
		c.none.Wait()
	}
}

// kill ends all programs at once.
func (c *children) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for pid := range c.groups {
		killGroup(pid)
	}
}
