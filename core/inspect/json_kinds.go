package inspect

// The JSON of kinds.

import (
	"encoding/json"
	"time"

	"github.com/seed-6f6f2c11/duly/core/internal/wire"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/bound"
)

// kindListJSON are all kinds; pauses_cut is left out unless it is true.
type kindListJSON struct {
	Kinds []KindInfo `json:"kinds"`
	Cut   bool       `json:"pauses_cut,omitempty"`
}

// MarshalJSON writes the list.
func (l KindList) MarshalJSON() ([]byte, error) {
	w := kindListJSON(l)
	if w.Kinds == nil {
		w.Kinds = []KindInfo{}
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes.
func (l *KindList) UnmarshalJSON(data []byte) error { return json.Unmarshal(data, (*kindListJSON)(l)) }

// kindJSON is a kind; slots is null if the kind has no bound.
type kindJSON struct {
	Kind      string           `json:"kind"`
	Handled   bool             `json:"handled"`
	Gated     bool             `json:"gated"`
	Processes int              `json:"processes"`
	Live      int64            `json:"live"`
	Depth     int64            `json:"depth"`
	Resting   int64            `json:"resting"`
	Running   int64            `json:"running"`
	Slots     *slotsJSON       `json:"slots"`
	Pause     *model.PauseInfo `json:"pause"`
	Limits    []bound.LimitUse `json:"limits"`
	Settings  settingsJSON     `json:"settings"`
}

// slotsJSON are those of a kind in this process.
type slotsJSON struct {
	Total int `json:"total"`
	InUse int `json:"in_use"`
}

// settingsJSON are the settings of a kind as the file has them. Zero is none, or never.
type settingsJSON struct {
	Level          store.Level `json:"level"`
	Timeout        wire.Span   `json:"timeout"`
	Lease          wire.Span   `json:"lease"`
	MaxAttempts    int         `json:"max_attempts"`
	Backoff        wire.Span   `json:"backoff"`
	MaxBackoff     wire.Span   `json:"max_backoff"`
	MaxRetryAfters int         `json:"max_retry_afters"`
	PauseAfter     int         `json:"pause_after_failures"`
	Grace          wire.Span   `json:"grace"`
	Spread         wire.Span   `json:"spread"`
	CatchUp        int         `json:"catch_up"`
	ExpectSuccess  wire.Span   `json:"expect_success,omitzero"`
	Disabled       bool        `json:"disabled"`
	Active         bool        `json:"activity"` // its tasks are created by activity
	Batch          int         `json:"batch,omitempty"`
	BatchWait      *wire.Span  `json:"batch_wait,omitempty"`
	BatchBy        []string    `json:"batch_by,omitempty"`
}

// MarshalJSON writes a kind.
func (k KindInfo) MarshalJSON() ([]byte, error) {
	w := kindJSON{Settings: settingsOf(&k.Settings)}
	wire.Copy(&w, &k.Counters)
	wire.Copy(&w, &k)
	w.Depth = k.Counters.Depth()
	if k.Slots.Total > 0 {
		w.Slots = (*slotsJSON)(&k.Slots)
	}
	if w.Limits == nil {
		w.Limits = []bound.LimitUse{}
	}
	return json.Marshal(w)
}

// settingsOf are the settings of a kind for JSON. Settings of batches are those that a batch handler uses.
func settingsOf(k *model.KindConfig) settingsJSON {
	w := settingsJSON{}
	wire.Copy(&w, k)
	w.MaxRetryAfters, w.PauseAfter, w.CatchUp, w.Active = max(w.MaxRetryAfters, 0), max(w.PauseAfter, 0), max(w.CatchUp, 0), k.Activity != nil
	if w.Batch = max(k.Batch, 0); w.Batch == 0 {
		w.BatchBy = nil
		return w
	}
	wait := wire.Span(k.BatchWait)
	w.BatchWait = &wait
	if w.BatchBy == nil {
		w.BatchBy = []string{model.BatchByAgent}
	}
	return w
}

// UnmarshalJSON reads what MarshalJSON writes. The settings of a kind that the process handles count as its own; those of others as the defaults.
func (k *KindInfo) UnmarshalJSON(data []byte) error {
	w := kindJSON{}
	err := json.Unmarshal(data, &w)
	*k = KindInfo{Known: w.Handled, Batches: w.Settings.Batch > 0}
	wire.Copy(k, &w)
	wire.Copy(&k.Counters, &w)
	wire.Copy(&k.Settings, &w.Settings)
	if w.Settings.BatchWait != nil {
		k.Settings.BatchWait = time.Duration(*w.Settings.BatchWait)
	}
	if w.Settings.Active {
		k.Settings.Activity = &model.Activity{}
	}
	if w.Slots != nil {
		k.Slots = model.KindSlots(*w.Slots)
	}
	return err
}
