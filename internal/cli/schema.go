package cli

// The command schema.

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/dulyfile"
)

// schemaCommand needs neither a store nor a file: editors take what it prints.
func (p *process) schemaCommand() *cobra.Command {
	cmd := command("schema", "Print the JSON Schema of duly.yaml, for editors", "  duly schema > duly.schema.json",
		func(*cobra.Command, []string) error {
			_, err := io.WriteString(p.stdout, dulyfile.Schema())
			return err
		})
	cmd.Long = `Print a JSON Schema (draft 2020-12) of duly.yaml. An editor with a YAML language server completes and checks
the file by it, if this is its first line:

# yaml-language-server: $schema=duly.schema.json`
	return cmd
}
