package base

// Who may do what, by the host's rule.

import (
	"context"

	"github.com/seed-6f6f2c11/duly/core/model"
)

// Authorize fails with a *[model.ForbiddenError] if the caller of ctx may not do something: by its rights, or by [core.Config].Authorizer.
// Submit, Existing and Notice call it themselves, and so does a pull before each run; adapters call it for all other calls.
func (s *Base) Authorize(ctx context.Context, what model.Access) error {
	who := model.PrincipalOf(ctx)
	if who == nil {
		if s.Config.Authorizer == nil {
			return nil
		}
		who = &model.Principal{Name: s.Config.Name}
	}
	if who.Rights != nil {
		if err := who.Rights.Authorize(ctx, *who, what); err != nil {
			return &model.ForbiddenError{Who: who.Name, Access: what, Err: err}
		}
	}
	if s.Config.Authorizer != nil {
		if err := s.Config.Authorizer.Authorize(ctx, *who, what); err != nil {
			return &model.ForbiddenError{Who: who.Name, Access: what, Err: err}
		}
	}
	return nil
}

// AuthorizeSubmit authorizes each task of a submit: if one is refused, all are.
func (s *Base) AuthorizeSubmit(ctx context.Context, tasks []model.NewTask) error {
	if s.Config.Authorizer == nil && model.PrincipalOf(ctx) == nil {
		return nil
	}
	for i := range tasks {
		t := &tasks[i]
		if err := s.Authorize(ctx, model.Access{Action: model.ActionSubmit, Agent: t.Agent, User: t.UserID, Kind: t.Kind, ID: t.ID}); err != nil {
			return err
		}
	}
	return nil
}
