package runcontext_test

// The context of a run beside one of package context: nobody can tell them apart.

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/internal/runcontext"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/core/store"
)

type contextKey struct{}

// ended are ways in which a context ends; cancel is its own, parent that of what it is made of.
var ended = map[string]func(cancel, parent context.CancelCauseFunc){
	"not":                         func(_, _ context.CancelCauseFunc) {},
	"its run":                     func(cancel, _ context.CancelCauseFunc) { cancel(nil) },
	"a cause":                     func(cancel, _ context.CancelCauseFunc) { cancel(model.ErrTimeout) },
	"a cause, after its run":      func(cancel, _ context.CancelCauseFunc) { cancel(nil); cancel(model.ErrTimeout) },
	"its pull":                    func(_, parent context.CancelCauseFunc) { parent(model.ErrStopping) },
	"its pull, after its run":     func(cancel, parent context.CancelCauseFunc) { cancel(nil); parent(model.ErrStopping) },
	"a cause, after its pull":     func(cancel, parent context.CancelCauseFunc) { parent(model.ErrStopping); cancel(model.ErrTimeout) },
	"its pull, after a cause":     func(cancel, parent context.CancelCauseFunc) { cancel(model.ErrTimeout); parent(model.ErrStopping) },
	"its run, after a cause":      func(cancel, _ context.CancelCauseFunc) { cancel(store.ErrLeaseLost); cancel(nil) },
	"its run, and its pull after": func(cancel, parent context.CancelCauseFunc) { cancel(nil); parent(nil) },
}

// said is all that a context says of itself, and what one says that is made of it.
func said(ctx context.Context) string {
	child, stop := context.WithTimeout(context.WithValue(ctx, contextKey{}, 2), time.Hour)
	defer stop()
	_, deadline := ctx.Deadline()
	over := func(ctx context.Context) bool {
		select {
		case <-ctx.Done():
			return true
		default:
			return false
		}
	}
	return fmt.Sprint(ctx.Err(), context.Cause(ctx), deadline, over(ctx), ctx.Value(contextKey{}), child.Err(), context.Cause(child), over(child), child.Value(contextKey{}))
}

func TestRunContext(t *testing.T) {
	t.Parallel()
	for name, end := range ended {
		for _, asked := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", asked before: ", asked), func(t *testing.T) {
				t.Parallel()
				base := context.WithValue(t.Context(), contextKey{}, 1)
				plainParent, endPlain := context.WithCancelCause(base)
				plain, cancelPlain := context.WithCancelCause(plainParent)
				parent, endParent := context.WithCancelCause(base)
				own := &runcontext.Context{Parent: parent}
				if asked {
					require.NotNil(t, own.Done())
				}
				end(cancelPlain, endPlain)
				end(own.Cancel, endParent)
				// In this order a Err that is asked first must not change what the others say.
				assert.Equal(t, plain.Err(), own.Err())
				assert.Equal(t, context.Cause(plain), context.Cause(own))
				assert.Equal(t, said(plain), said(own))
				assert.Equal(t, "duly.run", fmt.Sprint(own))
			})
		}
	}
}

// What waits for the context is woken, whoever ends it.
func TestRunContextWakes(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(cancel, parent context.CancelCauseFunc){"a cause": ended["a cause"], "its pull": ended["its pull"]} {
		synctest.Test(t, func(t *testing.T) {
			parent, endParent := context.WithCancelCause(t.Context())
			own := &runcontext.Context{Parent: parent}
			child, stop := context.WithCancel(own)
			defer stop()
			var called error
			context.AfterFunc(own, func() { called = context.Cause(own) })
			end(own.Cancel, endParent)
			<-own.Done()
			<-child.Done()
			synctest.Wait()
			require.Error(t, called, name)
			assert.True(t, errors.Is(called, model.ErrTimeout) || errors.Is(called, model.ErrStopping), name)
			assert.Equal(t, called, context.Cause(child), name)
		})
	}
}
