// Package count is the counters of a store: of its tasks, and of the runs of each kind.
package count

import (
	"slices"
	"sort"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Counters count the tasks of a store. Waiting, Resting, InProgress and Parked are of now, Parked being a part of Waiting; the
// others have only grown since the store was first used.
type Counters struct {
	Partitions int   `json:"partitions"`
	Agents     int64 `json:"agents"` // with at least one live task
	Waiting    int64 `json:"waiting"`
	Resting    int64 `json:"resting"` // activity tasks that wait for activity: no part of Waiting
	InProgress int64 `json:"in_progress"`
	Parked     int64 `json:"parked"`
	Held       int64 `json:"held"` // of those parked: due, but paused
	Completed  int64 `json:"completed"`
	Failed     int64 `json:"failed"`
	Cancelled  int64 `json:"cancelled"`
	Submitted  int64 `json:"submitted"`
	Again      int64 `json:"again"`     // runs that ended with the task waiting: retries, snoozes, recurring tasks
	Released   int64 `json:"released"`  // released unstarted or unfinished, uncharged
	Recovered  int64 `json:"recovered"` // leases that expired
	Replayed   int64 `json:"replayed"`
	Deleted    int64 `json:"deleted"`
	Trimmed    int64 `json:"trimmed"`   // finished records dropped for want of room before their time
	Malformed  int64 `json:"malformed"` // records passed over, as the store did not write them
}

// Stats are the counters of a store, and of the kinds of its tasks.
type Stats struct {
	Counters

	Now         moment.Millis
	NextDue     moment.Millis // when the first waiting task is due; zero for never
	LastTrimmed moment.Millis // when the last of the records counted by Trimmed was dropped; zero for never
	Kinds       []KindStats   // by name
}

// CountResting is for stores: it subtracts resting tasks, by the counters of kinds, from the waiting ones.
func (s *Stats) CountResting() {
	for i := range s.Kinds {
		s.Resting += s.Kinds[i].Resting
	}
	s.Waiting = max(s.Waiting-s.Resting, 0)
}

// KindCounters are the counters of one kind of task. Live, Running and Resting are of now; the others have grown since the
// store was first used.
type KindCounters struct {
	Kind                        string
	Live, Running               int64
	Resting                     int64 // of those live: activity tasks that wait for activity
	Runs, Failures              int64
	Duration, Shortest, Longest time.Duration // of all runs together, and of single ones
	Lag, LongestLag             time.Duration // from due to claimed
	At, Every, Cron, Activity   int64         // runs by the type of their schedule
}

// KindStats are the counters of one kind of task, and its last failures.
type KindStats struct {
	KindCounters

	Failed []Failure // the last failed runs, newest first
}

// Failure is a failed run as the statistics of its kind keep it.
type Failure struct {
	At   moment.Millis
	Note []byte // as settled: see store.RunStat
}

// KeptFailures is how many of the last failed runs of a kind are kept.
const KeptFailures = 20

// Depth is how many tasks wait for their time, a process or the end of a pause. Resting tasks have nothing to wait for.
func (k *KindCounters) Depth() int64 { return max(k.Live-k.Running-k.Resting, 0) }

// Average is the mean duration of the runs; zero if there were none.
func (k *KindCounters) Average() time.Duration {
	if k.Runs == 0 {
		return 0
	}
	return k.Duration / time.Duration(k.Runs)
}

// AverageLag is the mean time from due to claimed; zero if there were no runs.
func (k *KindCounters) AverageLag() time.Duration {
	if k.Runs == 0 {
		return 0
	}
	return k.Lag / time.Duration(k.Runs)
}

// Add adds the counters of the same kind elsewhere.
func (k *KindStats) Add(o *KindStats) {
	if o.Runs > 0 && (k.Runs == 0 || o.Shortest < k.Shortest) {
		k.Shortest = o.Shortest
	}
	k.Longest, k.LongestLag = max(k.Longest, o.Longest), max(k.LongestLag, o.LongestLag)
	k.Live, k.Running, k.Resting = k.Live+o.Live, k.Running+o.Running, k.Resting+o.Resting
	k.Runs, k.Failures = k.Runs+o.Runs, k.Failures+o.Failures
	k.Duration, k.Lag = k.Duration+o.Duration, k.Lag+o.Lag
	k.At, k.Every, k.Cron, k.Activity = k.At+o.At, k.Every+o.Every, k.Cron+o.Cron, k.Activity+o.Activity
	if len(o.Failed) == 0 {
		return
	}
	all := slices.Concat(o.Failed, k.Failed)
	sort.SliceStable(all, func(i, j int) bool { return all[i].At > all[j].At })
	k.Failed = all[:min(len(all), KeptFailures)]
}

// Table gathers the counters of kinds from several partitions. The zero value is empty.
type Table struct{ kinds map[string]*KindStats }

// Add adds the counters of a kind in one partition.
func (t *Table) Add(k *KindStats) {
	if t.kinds == nil {
		t.kinds = map[string]*KindStats{}
	}
	if t.kinds[k.Kind] == nil {
		t.kinds[k.Kind] = &KindStats{KindCounters: KindCounters{Kind: k.Kind}}
	}
	t.kinds[k.Kind].Add(k)
}

// Sorted are the gathered kinds, by name.
func (t *Table) Sorted() []KindStats {
	out := make([]KindStats, 0, len(t.kinds))
	for _, k := range t.kinds {
		out = append(out, *k)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Kind < out[j].Kind })
	return out
}
