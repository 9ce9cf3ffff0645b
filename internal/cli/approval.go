package cli

// The command approval, and what answers its addresses.

import (
	"time"

	"github.com/spf13/cobra"

	httpadapter "github.com/seed-6f6f2c11/duly/adapters/http"
	"github.com/seed-6f6f2c11/duly/core"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// approvalsOf makes the addresses of a file; nil if it has none.
func approvalsOf(c *dulyfile.File) (*httpadapter.Approvals, error) {
	if c.Approvals == nil {
		return nil, nil //nolint:nilnil // none are wanted
	}
	a, err := httpadapter.NewApprovals(c.Approvals.URL, []byte(c.Approvals.Secret))
	if err != nil {
		return nil, usage("see docs/signals.md", "%w", err)
	}
	return a, nil
}

// approvalCommand prints an address for a person. It asks no store: the task need not wait yet.
func (p *process) approvalCommand(o *options) *cobra.Command {
	q := httpadapter.Approval{For: 48 * time.Hour}
	cmd := command("approval AGENT KEY", "Make an address at which a person answers a task that waits for a signal",
		"  duly approval ada refund-17 -c duly.yaml --question 'Refund 40 EUR to Bob?'\n  duly approval ada refund-17 -c duly.yaml --for 2h",
		func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("name them as AGENT KEY", "expected an agent and the key of a signal")
			}
			c, err := loadFile(cmd.Context(), o)
			if err != nil {
				return err
			}
			approvals, err := approvalsOf(c)
			if err != nil {
				return err
			}
			if approvals == nil {
				return usage("with -c, name a file that has approvals: { url: https://duly.example, secret_env: NAME }", "there is nowhere to answer")
			}
			q.Agent, q.Key = args[0], args[1]
			address, err := approvals.URL(q, core.SystemClock{}.Now())
			if err != nil {
				return usage("see "+cmd.CommandPath()+" --help", "%w", err)
			}
			return o.print(p.stdout, map[string]string{"url": address}, func(w *table.Page) { w.Line("%s", address) })
		})
	cmd.Args = cobra.ArbitraryArgs
	cmd.Flags().StringVar(&q.Question, "question", "", "what the page asks; by default, which agent and signal it is about")
	durationVar(cmd.Flags(), &q.For, "for", q.For, "how long it may be answered")
	return onlyHere(o.withJSON(cmd), "the secret that makes the address is in the file", "leave it out, and name the file with -c")
}
