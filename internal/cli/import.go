package cli

// The command import.

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/exit"
	"github.com/seed-6f6f2c11/duly/internal/cli/importer"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// mostImported is how large a file may be that is imported.
const mostImported = 16 << 20

// importedIn is how long the Redis of another program may take.
const importedIn = time.Minute

// importCommand needs no store: it writes a file, which duly apply stores.
func importCommand(o *command.Options) *cobra.Command {
	var agent string
	cmd := o.WithJSON(command.New("import FORMAT FILE", "Write a duly.yaml from the schedules of another program",
		"  crontab -l | duly import crontab - --agent ops > duly.yaml\n  duly import openclaw ~/.openclaw/cron/jobs.json > duly.yaml\n  kubectl get cronjobs -A -o yaml | duly import kubernetes - > duly.yaml\n  duly import bullmq redis://localhost:6379/0 > duly.yaml\n  duly apply -f duly.yaml --dry-run",
		func(cmd *cobra.Command, args []string) error {
			found, err := find(cmd.Context(), args[0], args[1], agent, o.Stdin)
			if err != nil {
				return err
			}
			file, err := found.File()
			if err != nil {
				return err
			}
			if o.JSON {
				return o.Print(struct {
					Tasks int      `json:"tasks"`
					Left  []string `json:"left"`
					File  string   `json:"file"`
				}{len(found.Tasks), append([]string{}, found.Left...), string(file)}, nil)
			}
			if _, err := o.Stdout.Write(file); err != nil {
				return fmt.Errorf("write the file: %w", err)
			}
			for _, l := range found.Left {
				_, _ = fmt.Fprintln(o.Stderr, l)
			}
			_, _ = fmt.Fprintf(o.Stderr, "%s, %s; look through the file, then: duly apply -f duly.yaml --dry-run\n", table.Count(len(found.Tasks), "task"), table.Count(len(found.Left), "remark"))
			return nil
		}))
	cmd.Long = "Write a duly.yaml from the schedules of another program. Nothing is stored. What cannot be kept as it is becomes a comment of the file, and is written to standard error.\n\nFormats:\n\n" + formats()
	cmd.Args = cobra.ExactArgs(2)
	cmd.ValidArgs = importer.Names()
	cmd.Flags().StringVar(&agent, "agent", "imported", "owner of tasks for which the file names no other")
	return cmd
}

// find reads the schedules of a file, or of a Redis.
func find(ctx context.Context, format, from, agent string, in io.Reader) (*importer.Found, error) {
	if importer.IsRedis(format) {
		ctx, cancel := context.WithTimeout(ctx, importedIn)
		defer cancel()
		return importer.ReadRedis(ctx, format, from, agent)
	}
	data, err := imported(from, in)
	if err != nil {
		return nil, err
	}
	return importer.Read(format, data, agent)
}

// formats are what can be imported, a line each.
func formats() string {
	var out strings.Builder
	for _, name := range importer.Names() {
		fmt.Fprintf(&out, "- %s: %s\n", name, importer.Formats[name])
	}
	return strings.TrimSuffix(out.String(), "\n")
}

// imported is the content of a file, or of the standard input for a dash.
func imported(file string, in io.Reader) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file) //nolint:gosec // the user names the file
		if err != nil {
			return nil, exit.Misuse("name a file that can be read, or - for the standard input", "%v", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, mostImported+1))
	if err != nil {
		return nil, fmt.Errorf("read the file: %w", err)
	}
	if len(data) > mostImported {
		return nil, exit.Misuse("import it in parts", "the file has more than %d MiB", mostImported>>20)
	}
	return data, nil
}
