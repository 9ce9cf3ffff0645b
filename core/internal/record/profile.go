package record

// The profile: what an agent has set for all of its tasks.

import (
	"unsafe"

	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// Profile is the stored profile of an agent.
// A store keeps it as opaque bytes, and hands it out with every claim and submit.
type Profile struct {
	Revision int64
	Zone     string
	Quiet    []string // each as from, to and days, with a zero byte between them
	Urgent   bool     // urgent tasks start in quiet hours; flags are grouped
	Deleted  bool     // it is kept until all tasks are planned without it
	Labels   []string // each as its name, a zero byte and its value
	Limits   []string // of the agent, and its budgets, each as JSON
	Budgets  []string
	Quota    string // as JSON; empty for none
	Tenant   string
	// Replanning is since when tasks are being planned by it; zero once all are.
	Replanning moment.Millis
}

var profiles = tableOf(rows{
	{number: 1, form: formCount, at: unsafe.Offsetof(Profile{}.Revision)},
	{number: 2, form: formText, at: unsafe.Offsetof(Profile{}.Zone)},
	{number: 3, form: formTexts, at: unsafe.Offsetof(Profile{}.Quiet)},
	{number: 4, form: formFlag, at: unsafe.Offsetof(Profile{}.Urgent)},
	{number: 5, form: formTexts, at: unsafe.Offsetof(Profile{}.Labels)},
	{number: 6, form: formCount, at: unsafe.Offsetof(Profile{}.Replanning)},
	{number: 7, form: formFlag, at: unsafe.Offsetof(Profile{}.Deleted)},
	{number: 8, form: formTexts, at: unsafe.Offsetof(Profile{}.Limits)},
	{number: 9, form: formTexts, at: unsafe.Offsetof(Profile{}.Budgets)},
	{number: 10, form: formText, at: unsafe.Offsetof(Profile{}.Quota)},
	{number: 11, form: formText, at: unsafe.Offsetof(Profile{}.Tenant)},
})

// Encode is the profile as it is stored.
func (p *Profile) Encode() []byte { return profiles.encode(unsafe.Pointer(p), 64) }

// DecodeProfile reads a profile. With an error it has what was read before.
func DecodeProfile(data []byte) (Profile, error) {
	var p Profile
	err := profiles.decode(data, unsafe.Pointer(&p))
	return p, err
}
