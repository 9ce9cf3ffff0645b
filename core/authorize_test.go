package core_test

// Authorization: who is asked about, when, and what becomes of what is refused.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/memstore"
	"github.com/seed-6f6f2c11/duly/core/model"
)

// A platform suspends an agent: nobody submits for it, and what waits does not run.
func ExampleAuthorizer() {
	suspended := map[string]bool{"bob": true}
	s, err := core.New(memstore.New(memstore.Config{}), core.Config{
		Authorizer: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
			if suspended[what.Agent] && what.Action != model.ActionRead {
				return errors.New("it is suspended")
			}
			return nil
		}),
	})
	if err != nil {
		panic(err)
	}
	ctx := core.WithPrincipal(context.Background(), core.Principal{Name: "eve"})
	_, err = s.Submit(ctx, core.NewTask{Agent: "ada", Kind: "digest"}, core.NewTask{Agent: "bob", Kind: "digest"})
	fmt.Println(core.CodeOf(err), err)
	// Output: forbidden not allowed to submit tasks of the agent "bob": it is suspended
}

// asks are what an authorizer was asked, as text.
type asks struct {
	core.Authorizer

	asked []string
}

func (a *asks) Authorize(_ context.Context, who core.Principal, what core.Access) error {
	a.asked = append(a.asked, fmt.Sprintf("%s %s %s/%s %s %s", who.Name, what.Action, what.Agent, what.ID, what.Kind, what.User))
	if what.Agent == "no" {
		return errors.New("no")
	}
	return nil
}

func TestSubmitsAreAuthorizedOneByOne(t *testing.T) {
	a := &asks{}
	virtual(t, core.Config{Name: "me", Authorizer: a, Kinds: map[string]core.KindConfig{"seen": {Activity: &core.Activity{}}}}, func(w *world) {
		ctx := w.Context()
		_, err := w.s.Submit(ctx, core.NewTask{Agent: "a", ID: "1", Kind: "k", UserID: "u"}, core.NewTask{Agent: "no", ID: "2", Kind: "k"})
		var refused *core.ForbiddenError
		require.ErrorAs(w, err, &refused)
		assert.Equal(w, "me no", refused.Who+" "+refused.Access.Agent)
		_, err = w.s.Existing(ctx, core.NewTask{Agent: "no", ID: "2", Kind: "k"})
		require.ErrorAs(w, err, &refused)
		_, err = w.s.Notice(ctx, "seen", core.Subject{User: "u", Agent: "no"})
		require.ErrorAs(w, err, &refused)
		assert.Zero(w, w.store.total(), "before any store call")
		_, err = w.s.Submit(core.WithPrincipal(ctx, core.Principal{Name: "eve", Rights: a}), core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		require.NoError(w, err)
		assert.Equal(w, []string{
			"me submit a/1 k u", "me submit no/2 k ", "me submit no/2 k ", "me submit no/ seen u", "eve submit a/1 k ", "eve submit a/1 k ",
		}, a.asked, "by its rights, and by the scheduler's")
	})
}

// Before a run this process is asked about, whoever has asked for the pull; what a handler submits has its rights too.
func TestRunsAreAuthorizedForTheProcess(t *testing.T) {
	a := &asks{}
	nothing := core.AuthorizerFunc(func(context.Context, core.Principal, core.Access) error { return errors.New("no rights at all") })
	virtual(t, core.Config{Name: "me", Authorizer: a}, func(w *world) {
		var nested error
		core.Handle(w.s, "k", func(ctx context.Context, _ *core.Task[note]) error {
			_, nested = w.s.Submit(ctx, core.NewTask{Agent: "b", ID: "child", Kind: "other"})
			return nested
		})
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", UserID: "u"})
		a.asked = nil
		r, err := w.s.RunDue(core.WithPrincipal(w.Context(), core.Principal{Name: "eve", Rights: nothing}), core.Scope{})
		require.NoError(w, err)
		assert.Equal(w, 1, r.Completed)
		assert.Equal(w, []string{"me run a/1 k u", "me submit b/child other "}, a.asked)
		require.NoError(w, nested)
	})
}

// A run that is refused fails without its handler, and is tried again; Snooze puts it off uncharged.
func TestARunThatIsRefused(t *testing.T) {
	var refusal error
	virtual(t, core.Config{Authorizer: core.AuthorizerFunc(func(_ context.Context, _ core.Principal, what core.Access) error {
		if what.Action == model.ActionRun {
			return refusal
		}
		return nil
	})}, func(w *world) {
		ran := 0
		core.Handle(w.s, "k", func(context.Context, *core.Task[note]) error { ran++; return nil })
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k"})
		refusal = errors.New("suspended")
		assert.Equal(w, 1, w.runFailing().Retried)
		assert.Equal(w, `authorizer: not allowed to run tasks of the agent "a": suspended`, w.task("a", "1").LastError)
		refusal = core.Snooze(time.Hour)
		time.Sleep(time.Minute)
		assert.Equal(w, 1, w.run().Snoozed)
		assert.Zero(w, ran)
		refusal = nil
		time.Sleep(time.Hour)
		assert.Equal(w, 1, w.run().Completed)
		assert.Equal(w, 1, ran)
	})
}

// Who gives a command without a name is the caller.
func TestTheCallerGivesTheCommand(t *testing.T) {
	virtual(t, core.Config{}, func(w *world) {
		w.submit(core.NewTask{Agent: "a", ID: "1", Kind: "k", Delay: time.Hour})
		ctx := core.WithPrincipal(w.Context(), core.Principal{Name: "eve"})
		require.NoError(w, w.s.Pause(ctx, core.Target{Agent: "a", ID: "1"}, core.Pause{}))
		assert.Equal(w, "eve", w.task("a", "1").Pauses[0].By)
		_, err := w.s.Cancel(ctx, "a", "1", core.Order{By: "bob"})
		require.NoError(w, err)
		assert.Equal(w, "eve", w.seen(model.EventPause)[0].By)
		assert.Equal(w, "eve", w.seen(model.EventCancel)[0].By, "whomever it names")
		assert.Equal(w, "cancelled by eve (bob)", w.task("a", "1").Reason)
	})
}
