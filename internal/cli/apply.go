package cli

// The command apply.

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/core/model"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/storage"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// applyCommand does what a daemon does at its start, without running anything, so that a deployment can
// apply a file before its daemons restart.
func applyCommand(o *command.Options) *cobra.Command {
	var a dulyfile.ApplyOptions
	var owner string
	cmd := command.New("apply", "Create or update the tasks in a file; leave unchanged ones alone",
		"  duly apply -f duly.yaml\n  duly apply -f duly.yaml --owner deploy-7 --prune --dry-run\n  duly apply -f duly.yaml --owner deploy-7 --prune",
		func(cmd *cobra.Command, _ []string) error {
			// -f is the same option as -c: apply takes exactly one file.
			if o.File == "" {
				return exit.Misuse("name one with -f", "needs a file with tasks")
			}
			c, err := command.LoadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			if owner != "" {
				if wrong, ok := errors.AsType[*core.InvalidError](model.CheckOwner(owner)); ok {
					return &core.InvalidError{Field: "--owner", Reason: wrong.Reason}
				}
				c.Owner = owner
			}
			if c.Owner == "" && (a.Prune || a.Adopt) {
				return exit.Misuse("name the owner of the file's tasks with --owner, or with owner: in the file", "--prune and --adopt need an owner, as they are about tasks that one has declared")
			}
			return apply(cmd.Context(), o, c, a)
		})
	flags := cmd.Flags()
	flags.StringVarP(&o.File, "file", "f", "", "the file, the same as -c of other commands")
	flags.StringVar(&owner, "owner", "", "who declares the tasks of the file, such as a deployment (default owner: of the file); kept with each task")
	flags.BoolVar(&a.Prune, "prune", false, "delete tasks that this owner declared earlier and that left the file; never those of others")
	flags.BoolVar(&a.Adopt, "adopt", false, "take over tasks of the file that belong to other owners; without it they stay as they are")
	flags.BoolVar(&a.DryRun, "dry-run", false, "show what would be created, updated and deleted, and change nothing")
	return command.OnlyHere(o.WithJSON(cmd), "it compares the file with the store, which the HTTP API does not show", "run it where Redis can be reached, with --redis, or submit tasks with duly submit -f")
}

// applied is the answer of apply. Tasks that are unchanged are listed on a dry run alone.
type applied struct {
	Created   int               `json:"created"`
	Changed   int               `json:"changed"`
	Unchanged int               `json:"unchanged"`
	Deleted   int               `json:"deleted"`
	Conflicts int               `json:"conflicts"`
	DryRun    bool              `json:"dry_run"`
	Tasks     []dulyfile.Change `json:"tasks"`
}

// apply applies a file and says what was done, also if some tasks are left to other owners: that is a failure after the answer.
func apply(ctx context.Context, o *command.Options, c *dulyfile.File, a dulyfile.ApplyOptions) error {
	s, store, err := storage.OpenScheduler(ctx, c)
	if err != nil {
		return err
	}
	defer store.End(ctx)
	answer := applied{DryRun: a.DryRun, Tasks: []dulyfile.Change{}}
	a.Each = func(change dulyfile.Change) {
		if a.DryRun || change.Action != dulyfile.ActionUnchanged {
			answer.Tasks = append(answer.Tasks, change)
		}
	}
	done, err := c.ApplyWith(ctx, s, a)
	if err != nil {
		return err
	}
	answer.Created, answer.Changed, answer.Deleted, answer.Conflicts = done.Created, done.Changed, done.Deleted, done.Kept
	answer.Unchanged = len(c.Tasks) - done.Created - done.Changed - done.Kept
	var left error
	if done.Kept > 0 {
		left = &exit.Failure{
			Why:  fmt.Errorf("%s of the file left unchanged, as other owners declared them", table.Count(done.Kept, "task")),
			Todo: "remove them from one of the files, or take them over with --adopt", Code: exit.Failed,
		}
	}
	return errors.Join(o.Print(answer, func(w *table.Page) { printApplied(w, &answer, a.Prune) }), left)
}

// printApplied shows the numbers, and each task on a dry run. Tasks that other owners have are named in any case.
func printApplied(w *table.Page, a *applied, pruned bool) {
	var rows []dulyfile.Change
	for _, t := range a.Tasks {
		if a.DryRun || t.Action == dulyfile.ActionConflict {
			rows = append(rows, t)
		}
	}
	if len(rows) > 0 {
		t := table.New(w, "ACTION", "AGENT", "ID", "OWNER")
		for _, r := range rows {
			owner := r.Owner
			if owner == "" {
				owner = "-"
			}
			t.Row(string(r.Action), r.Agent, r.ID, owner)
		}
		t.End()
		w.Line("")
	}
	verb, more := "", ""
	if a.DryRun {
		verb = "would be "
	}
	if pruned {
		more = fmt.Sprintf(", %d deleted", a.Deleted)
	}
	w.Line("%s %screated, %d updated, %d unchanged%s", table.Count(a.Created, "task"), verb, a.Changed, a.Unchanged, more)
}
