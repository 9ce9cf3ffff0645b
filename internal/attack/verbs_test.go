package attack_test

// The verbs of a store as an attacker calls them: those that a credential for one agent leads to.

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-6f6f2c11/duly/core/store"
	"github.com/seed-6f6f2c11/duly/core/store/moment"
)

// attack is one verb with hostile arguments.
type attack struct {
	verb string
	call func(ctx context.Context, a *attacker) (any, error)
}

// attacks are all verbs but those about all agents: their callers may see and change everything.
func attacks() []attack {
	return []attack{
		{"Submit", submits},
		{"Touch", touches},
		{"Look", looks},
		{"Claim", claims},
		{"Settle", settles},
		{"Extend", extends},
		{"Replay", replays},
		{"RunNow", runsNow},
		{"Cancel", cancels},
		{"Delete", deletes},
		{"Hold", holds},
		{"Unhold", unholds},
		{"Get", gets},
		{"List", lists},
		{"Group", groups},
	}
}

func submits(ctx context.Context, a *attacker) (any, error) {
	s := store.Submission{
		Agent: a.agent(), ID: a.id(), Kind: a.kind(), Group: a.group(), Key: a.one([]string{"", "key", "bob"}), Level: 1 + store.Level(a.random.IntN(3)),
		Due: a.when(), Body: a.bytes(), State: a.bytes(), OldGroup: a.group(),
	}
	if a.random.IntN(2) == 0 {
		version, err := a.version(ctx, s.Agent, s.ID)
		if err != nil {
			return nil, err
		}
		s.Conflict, s.Version = store.ConflictReplace, version
	}
	return a.store.Submit(ctx, []store.Submission{s})
}

func touches(ctx context.Context, a *attacker) (any, error) {
	return a.store.Touch(ctx, []store.Touch{{
		Agent: a.agent(), ID: a.id(), Kind: a.kind(), Level: 1, Body: a.bytes(), Pulse: store.Pulse{Delay: time.Duration(a.random.IntN(3)) * time.Second},
	}})
}

func looks(ctx context.Context, a *attacker) (any, error) {
	return a.store.Look(ctx, []store.LookRequest{{Agents: []string{a.agent(), a.agent()}, Kinds: a.kinds}})
}

func claims(ctx context.Context, a *attacker) (any, error) {
	asked := slices.Compact(slices.Sorted(slices.Values([]string{a.agent(), a.agent(), a.agent(), a.agent()}))) // each once, as core names them
	got, err := a.store.Claim(ctx, []store.ClaimRequest{{
		Nonce: fmt.Sprintf("%016x", a.random.Uint64()), Agents: asked, Kinds: a.kinds, Limit: 1 + a.random.IntN(20),
		Lease: time.Duration(1+a.random.IntN(2000)) * time.Millisecond, Serial: a.random.IntN(4) == 0,
	}})
	for i := range got {
		for j := range got[i].Tasks {
			a.looked(asked, got[i].Tasks[j].Agent)
			a.held = append(a.held, got[i].Tasks[j].Run)
		}
	}
	if most := 200; len(a.held) > most {
		a.held = a.held[len(a.held)-most:]
	}
	return got, err
}

func settles(ctx context.Context, a *attacker) (any, error) {
	verbs := []store.Verb{store.VerbComplete, store.VerbFail, store.VerbCancel, store.VerbAgain, store.VerbRelease, store.VerbRest}
	end := store.Settlement{
		Run: a.run(), Verb: verbs[a.random.IntN(len(verbs))], Due: a.when(), State: a.bytes(), Record: a.bytes(), Group: a.group(), Kind: a.kind(), BodyLen: 20,
	}
	if end.Verb == store.VerbAgain && a.random.IntN(4) == 0 {
		end.Hold = a.bytes()
	}
	return a.store.Settle(ctx, []store.Settlement{end})
}

// Only the fences of its own claims are extended: whoever extends one holds it.
func extends(ctx context.Context, a *attacker) (any, error) {
	if len(a.held) == 0 {
		return claims(ctx, a) // it has none yet
	}
	run := a.held[a.random.IntN(len(a.held))]
	fence := run.Fence
	if a.random.IntN(2) == 0 {
		run.Agent, run.ID = a.agent(), a.id()
	}
	e := store.Extension{Fence: fence, Lease: time.Second, Leave: a.random.IntN(4) == 0, Progress: []store.Progress{{Run: run, State: a.bytes()}}}
	if a.random.IntN(3) == 0 {
		e.Progress, e.Back, e.Nonce = nil, []store.Run{run}, string(a.bytes())
	}
	return a.store.Extend(ctx, []store.Extension{e})
}

func replays(ctx context.Context, a *attacker) (any, error) {
	return a.store.Replay(ctx, []store.Replay{{Agent: a.agent(), ID: a.id(), Kind: a.kind(), Group: a.group(), Level: 1, Body: a.bytes(), State: a.bytes()}})
}

func runsNow(ctx context.Context, a *attacker) (any, error) {
	return a.store.RunNow(ctx, []store.RunNow{{Agent: a.agent(), ID: a.id(), Group: a.group(), Queue: a.random.IntN(2) == 0}})
}

// version is that of a task as it is now; empty if it is not live.
func (a *attacker) version(ctx context.Context, agent, id string) (string, error) {
	found, err := a.store.Get(ctx, store.Get{Agent: agent, IDs: []string{id}})
	if err != nil {
		return "", err
	}
	return found.Tasks[0].Version, nil
}

func cancels(ctx context.Context, a *attacker) (any, error) {
	c := store.Cancellation{Agent: a.agent(), ID: a.id(), Group: a.group(), Record: a.bytes(), Order: a.bytes()}
	var err error
	if c.Version, err = a.version(ctx, c.Agent, c.ID); err != nil {
		return nil, err
	}
	return a.store.Cancel(ctx, []store.Cancellation{c})
}

func deletes(ctx context.Context, a *attacker) (any, error) {
	return a.store.Delete(ctx, []store.Deletion{{Agent: a.agent(), ID: a.id(), Group: a.group()}})
}

// target is an agent of its own or a task of one; wider holds are for operators.
func (a *attacker) target() store.Target {
	t := store.Target{Agent: a.agent()}
	if a.random.IntN(3) > 0 {
		t.ID = a.id()
	}
	return t
}

func holds(ctx context.Context, a *attacker) (any, error) {
	return a.store.Hold(ctx, []store.Hold{{Target: a.target(), Note: a.bytes(), Until: moment.When{After: time.Duration(a.random.IntN(2000)) * time.Millisecond}}})
}

func unholds(ctx context.Context, a *attacker) (any, error) {
	return a.store.Unhold(ctx, []store.Target{a.target()})
}

func gets(ctx context.Context, a *attacker) (any, error) {
	asked := a.agent()
	found, err := a.store.Get(ctx, store.Get{Agent: asked, IDs: []string{a.id(), a.id()}, Explain: a.random.IntN(2) == 0})
	for i := range found.Tasks {
		if found.Tasks[i].Agent != "" {
			a.looked([]string{asked}, found.Tasks[i].Agent)
		}
	}
	return found, err
}

// The cursor of a list is the caller's: here often one of a victim's list.
func lists(ctx context.Context, a *attacker) (any, error) {
	asked := a.agent()
	page, err := a.store.List(ctx, store.List{Agent: asked, After: a.one(append(a.cursors[len(a.cursors)-9:], "", a.one(a.cursors))), Limit: 20, Brief: a.random.IntN(3) == 0})
	for i := range page.Tasks {
		a.looked([]string{asked}, page.Tasks[i].Agent)
	}
	return page, err
}

func groups(ctx context.Context, a *attacker) (any, error) {
	return a.store.Group(ctx, a.agent(), a.group())
}
