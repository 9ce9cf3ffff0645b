package core

// Kinds: what is known of each, together, and how a handler is taken out.

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// KindInfo is what is known of a kind: what this process has for it, and what the store counts of all processes.
type KindInfo struct {
	Kind     string
	Handled  bool       // this process has its handler
	Batches  bool       // which runs batches
	Gated    bool       // this process asks a gate before its runs
	Known    bool       // this process has its handler, or settings of its own for it: else its Settings are the defaults
	Settings KindConfig // in force in this process; what is none at all is zero, as in KindConfig it is negative
	Slots    KindSlots  // of this process; zero if the kind has no bound of its own
	// Processes are how many have said lately that they handle it, this one included; zero also if Config.Presence is not set.
	Processes int
	Counters  store.KindCounters // of the whole store
	Pause     *PauseInfo         // of the kind itself; nil if it is not paused
	Limits    []LimitUse         // about the kind itself
}

// KindList are all kinds, by name.
type KindList struct {
	Kinds []KindInfo
	// Cut reports that so many things are paused that not all were looked through: a kind without a Pause may be paused.
	Cut bool
}

// mostHolds is how many pauses are looked through for those of kinds: the store has them in no order.
const mostHolds = 5000

// DescribeKinds returns each kind that has a handler or settings in this process, or tasks, a limit or a pause in the store. What it costs does not
// depend on how many tasks there are.
func (s *Scheduler) DescribeKinds(ctx context.Context) (KindList, error) {
	stats, err := s.store.Stats(ctx)
	if err != nil {
		return KindList{}, err
	}
	limits, err := s.Limits(ctx)
	if err != nil {
		return KindList{}, err
	}
	pauses, cut, err := s.kindPauses(ctx)
	if err != nil {
		return KindList{}, err
	}
	all := s.ownKinds()
	of := func(kind string) *KindInfo {
		if all[kind] == nil {
			all[kind] = s.ownKind(kind)
		}
		return all[kind]
	}
	for i := range stats.Kinds {
		of(stats.Kinds[i].Kind).Counters = stats.Kinds[i].KindCounters
	}
	for i := range limits {
		if kind := limits[i].About.Kind; kind != "" {
			of(kind).Limits = append(of(kind).Limits, limits[i])
		}
	}
	for i := range pauses {
		of(pauses[i].Target.Kind).Pause = &pauses[i]
	}
	for _, p := range s.processes(ctx) {
		for _, kind := range p.Kinds {
			of(kind).Processes++
		}
	}
	list := KindList{Cut: cut}
	for _, kind := range slices.Sorted(maps.Keys(all)) {
		list.Kinds = append(list.Kinds, *all[kind])
	}
	return list, nil
}

// ownKinds are the kinds that have a handler or settings in this process.
func (s *Scheduler) ownKinds() map[string]*KindInfo {
	all := map[string]*KindInfo{}
	for _, kind := range s.handled() {
		all[kind] = s.ownKind(kind)
	}
	for kind := range s.config.Kinds {
		all[kind] = s.ownKind(kind)
	}
	return all
}

// ownKind is what this process has for a kind.
func (s *Scheduler) ownKind(kind string) *KindInfo {
	info := &KindInfo{Kind: kind, Settings: *s.kind(kind), Counters: store.KindCounters{Kind: kind}, Slots: s.slots.stats().Kinds[kind]}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if h := s.handlers[kind]; h != nil {
		info.Handled, info.Batches = true, h.batch
	}
	info.Gated = s.gates[kind] != nil
	info.Known = info.Handled || s.ofKind[kind] != nil
	return info
}

// kindPauses are the pauses of kinds, and whether there may be more.
func (s *Scheduler) kindPauses(ctx context.Context) (pauses []PauseInfo, cut bool, err error) {
	q := store.PageOf{Limit: MaxPage}
	for seen := 0; seen < mostHolds; {
		page, err := s.store.Holds(ctx, q)
		if err != nil {
			return nil, false, err
		}
		for i := range page.Holds {
			if page.Holds[i].Target.Kind != "" {
				pauses = append(pauses, informPause(&page.Holds[i]))
			}
		}
		if page.Next == "" {
			return pauses, false, nil
		}
		seen, q.After = seen+max(len(page.Holds), 1), page.Next
	}
	return pauses, true, nil
}

// Unhandle takes the handler of a kind out of a running process, which begins no more runs of the kind and claims none: they are left for other
// processes. Runs under way end as any other, but one that is just being started may still begin. What has been claimed and has not begun, such as a batch that waits for
// more, is released uncharged. Settings, and the gate, stay for another [Handle]. It reports whether there was a handler.
func (s *Scheduler) Unhandle(kind string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handlers[kind] == nil {
		return false
	}
	delete(s.handlers, kind)
	// In place it must not change: those who read it hold no lock.
	s.kinds = slices.DeleteFunc(slices.Clone(s.kinds), func(k string) bool { return k == kind })
	return true
}

// handles reports whether a handler is still that of its kind. What makes occurrences into tasks of their own is of no kind.
func (s *Scheduler) handles(h *handler) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return h == spawner || s.handlers[h.kind] == h
}

// MarshalJSON writes the list; pauses_cut is left out unless it is true.
func (l KindList) MarshalJSON() ([]byte, error) {
	kinds := l.Kinds
	if kinds == nil {
		kinds = []KindInfo{}
	}
	return json.Marshal(struct {
		Kinds []KindInfo `json:"kinds"`
		Cut   bool       `json:"pauses_cut,omitempty"`
	}{kinds, l.Cut})
}

// MarshalJSON writes a kind; slots is null without a bound of its own.
func (k KindInfo) MarshalJSON() ([]byte, error) {
	type slots struct {
		Total int `json:"total"`
		InUse int `json:"in_use"`
	}
	var own *slots
	if k.Slots.Total > 0 {
		own = &slots{k.Slots.Total, k.Slots.InUse}
	}
	limits := k.Limits
	if limits == nil {
		limits = []LimitUse{}
	}
	return json.Marshal(struct {
		Kind      string       `json:"kind"`
		Handled   bool         `json:"handled"`
		Gated     bool         `json:"gated"`
		Processes int          `json:"processes"`
		Live      int64        `json:"live"`
		Depth     int64        `json:"depth"`
		Resting   int64        `json:"resting"`
		Running   int64        `json:"running"`
		Slots     *slots       `json:"slots"`
		Pause     *PauseInfo   `json:"pause"`
		Limits    []LimitUse   `json:"limits"`
		Settings  kindSettings `json:"settings"`
	}{
		k.Kind, k.Handled, k.Gated, k.Processes, k.Counters.Live, k.Counters.Depth(), k.Counters.Resting, k.Counters.Running,
		own, k.Pause, limits, settingsOf(&k),
	})
}

// kindSettings are the settings of a kind as the file has them. Zero is none, or never.
type kindSettings struct {
	Level         Level    `json:"level"`
	Timeout       string   `json:"timeout"`
	Lease         string   `json:"lease"`
	MaxAttempts   int      `json:"max_attempts"`
	Backoff       string   `json:"backoff"`
	MaxBackoff    string   `json:"max_backoff"`
	MaxRetryAfter int      `json:"max_retry_afters"`
	PauseAfter    int      `json:"pause_after_failures"`
	Grace         string   `json:"grace"`
	Spread        string   `json:"spread"`
	CatchUp       int      `json:"catch_up"`
	Disabled      bool     `json:"disabled"`
	Activity      bool     `json:"activity"` // its tasks are made by activity
	Batch         int      `json:"batch,omitempty"`
	BatchWait     string   `json:"batch_wait,omitempty"`
	BatchBy       []string `json:"batch_by,omitempty"`
}

// settingsOf are the settings of a kind for JSON. Of batches it has what a handler of batches uses.
func settingsOf(info *KindInfo) kindSettings {
	k := info.Settings
	text := func(d time.Duration) string { return max(d, 0).String() }
	out := kindSettings{
		Level: k.Level, Timeout: text(k.Timeout), Lease: text(k.Lease), MaxAttempts: k.MaxAttempts, Backoff: text(k.Backoff), MaxBackoff: text(k.MaxBackoff),
		MaxRetryAfter: max(k.MaxRetryAfters, 0), PauseAfter: max(k.PauseAfter, 0), Grace: text(k.Grace), Spread: text(k.Spread), CatchUp: max(k.CatchUp, 0),
		Disabled: k.Disabled, Activity: k.Activity != nil,
	}
	if k.Batch > 0 {
		out.Batch, out.BatchWait, out.BatchBy = k.Batch, text(k.BatchWait), k.BatchBy
		if out.BatchBy == nil {
			out.BatchBy = []string{BatchByAgent}
		}
	}
	return out
}
