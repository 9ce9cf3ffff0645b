// Package absence records which partitions of a store do not answer, and when each is asked again.
package absence

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// A partition that does not answer while others do is away, as when a cluster has lost one of its masters. Pulls continue
// without it; beside their work they ask it now and then whether it is back.

// Pauses between two requests to a partition that is away. The last one bounds how long a partition that is back has to wait.
const (
	firstAwayPause = 100 * time.Millisecond
	lastAwayPause  = time.Second
)

// Absences are the partitions that are away, for all pulls of a process.
type Absences struct {
	Count atomic.Int64 // how many; while it is zero, callers skip the lock
	mu    sync.Mutex
	away  map[int]*absence
}

// absence is what is known of a partition that does not answer: why, since when, and when it is asked
// again.
type absence struct {
	err     error
	since   time.Time
	pause   time.Duration
	retryAt time.Time
	asking  bool
}

// Failed records that a partition did not answer. It reports whether that is news.
func (a *Absences) Failed(partition int, err error, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away == nil {
		a.away = map[int]*absence{}
	}
	p := a.away[partition]
	news := p == nil
	if news {
		p = &absence{since: now, pause: firstAwayPause / 2}
		a.away[partition] = p
		a.Count.Add(1)
	}
	p.err, p.asking = err, false
	p.pause = min(2*p.pause, lastAwayPause)
	p.retryAt = now.Add(p.pause)
	return news
}

// Back records that a partition has answered. It reports whether that is news.
func (a *Absences) Back(partition int) bool {
	if a.Count.Load() == 0 {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.away[partition] == nil {
		return false
	}
	delete(a.away, partition)
	a.Count.Add(-1)
	return true
}

// Of is why a partition is away; nil if it is not.
func (a *Absences) Of(partition int) error {
	if a.Count.Load() == 0 {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.away[partition]; p != nil {
		return p.err
	}
	return nil
}

// TakeProbe reports whether it is time to ask a partition that is away, and no other caller does. The caller reports the result
// with Failed or Back.
func (a *Absences) TakeProbe(partition int, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.away[partition]
	if p == nil || p.asking || now.Before(p.retryAt) {
		return false
	}
	p.asking = true
	return true
}

// List are the partitions that are away, as an error; nil if none is.
func (a *Absences) List() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.away) == 0 {
		return nil
	}
	e := &model.AwayError{}
	for partition := range a.away {
		e.Partitions = append(e.Partitions, partition)
	}
	slices.Sort(e.Partitions)
	e.Err = a.away[e.Partitions[0]].err
	return e
}
