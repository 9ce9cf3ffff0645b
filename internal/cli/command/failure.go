package command

// What went wrong, by the code of its error.

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/remote"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// explain turns the error of a command into a failure.
// Errors of core have codes, and codes have exit codes: no text is ever looked at.
func explain(cmd *cobra.Command, err error) error {
	f := failureOf(cmd, err)
	if f.What == "" {
		f.What = NameOf(cmd)
	}
	return f
}

// failureOf is explain without the name of the command.
func failureOf(cmd *cobra.Command, err error) *exit.Failure {
	// A failure that a command made itself knows best.
	if known, ok := errors.AsType[*exit.Failure](err); ok {
		known.Complete()
		return known
	}
	f := &exit.Failure{Why: err, Kind: exit.CodeOf(err), Code: exit.Of(err)}
	if _, ok := errors.AsType[*dulyfile.Error](err); ok { // it says where in the file
		f.Code, f.Kind = exit.Usage, core.CodeInvalid
		return f
	}
	if refused, ok := errors.AsType[*remote.Error](err); ok && (refused.Away || refused.Credential) {
		if f.Todo = "check that duly daemon --http or duly serve is running there, or name another server with --server"; refused.Credential {
			f.Todo = "pass --token, set $" + TokenEnv + ", or see duly context"
		}
		return f
	}
	if invalid, ok := errors.AsType[*core.InvalidError](err); ok {
		f.Field = invalid.Field
	}
	switch f.Kind {
	case core.CodeInvalid:
		f.Why, f.Todo = asFlag(cmd, err), "see "+cmd.CommandPath()+" --help"
	case core.CodeConflict:
		if c, ok := errors.AsType[*core.ConflictError](err); ok {
			f.Todo = "see duly status " + table.ShellWord(c.Agent) + " " + table.ShellWord(c.ID)
		}
	case core.CodeDisabled:
		f.Todo = "remove disabled: true from the file, or use another kind"
	case core.CodeUnavailable:
		f.Todo = "check that Redis is running and reachable, then try again"
	default:
	}
	return f
}

// NameOf is the name of a command as typed after duly, such as submit, or limit set.
func NameOf(cmd *cobra.Command) string { return strings.TrimPrefix(cmd.CommandPath(), "duly ") }

// asFlag names the flag in place of the field, if the command has one for it.
// A user of the command line has never seen the field: "agent_id" is --agent to them.
func asFlag(cmd *cobra.Command, err error) error {
	inv, ok := errors.AsType[*core.InvalidError](err)
	if !ok {
		return err
	}
	// An index after the name, as in tags[2], has no flag of its own.
	name, _, _ := strings.Cut(strings.NewReplacer("agent_id", "agent", "_", "-").Replace(inv.Field), "[")
	// With a file, its fields are what the user wrote.
	if f := cmd.Flags().Lookup("file"); f != nil && f.Changed {
		return err
	}
	// Names that differ by a suffix or a prefix alone: agent_id and --agent, limit_key and --key.
	for _, name := range []string{name, strings.TrimSuffix(name, "-id"), strings.TrimPrefix(name, "limit-")} {
		if cmd.Flags().Lookup(name) != nil {
			return &core.InvalidError{Field: "--" + name, Reason: inv.Reason}
		}
	}
	return err
}
