package cli

// The command kinds.

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed-6f6f2c11/duly/core/inspect"
	"github.com/seed-6f6f2c11/duly/internal/cli/command"
	"github.com/seed-6f6f2c11/duly/internal/cli/table"
)

// kindsCommand shows what is known of each kind. The settings are those of the file that the command reads, as a daemon with that
// file has them.
func kindsCommand(o *command.Options) *cobra.Command {
	cmd := command.New("kinds", "List kinds: tasks, processes, limits, pauses and, with --json, settings", "  duly kinds\n  duly kinds -c duly.yaml --json",
		func(cmd *cobra.Command, _ []string) error {
			return o.OnStore(cmd.Context(), func(s command.Scheduler) error {
				list, err := s.DescribeKinds(cmd.Context())
				if err != nil {
					return err
				}
				return o.Print(list, func(w *table.Page) { printKindList(w, &list) })
			})
		})
	return o.WithJSON(cmd)
}

// printKindList writes one line for each kind. What a kind has none of is a dash.
func printKindList(w *table.Page, list *inspect.KindList) {
	if len(list.Kinds) == 0 {
		w.Line("no kinds")
		return
	}
	t := table.New(w, "KIND", "LEVEL", "LIVE", "RUNNING", "PROCESSES", "TIMEOUT", "BATCH", "LIMITS", "STATE")
	for i := range list.Kinds {
		k := &list.Kinds[i]
		level, timeout, batch := kindSettings(k)
		t.Row(table.First(k.Kind), level, strconv.FormatInt(k.Counters.Live, 10), strconv.FormatInt(k.Counters.Running, 10),
			strconv.Itoa(k.Processes), timeout, batch, kindLimits(k), table.First(kindState(k)))
	}
	t.End()
	if list.Cut {
		w.Line("not all pauses were looked through, as there are so many: duly pauses lists them")
	}
}

// kindSettings are a kind's level, timeout and batch, as a file or a process gave them.
func kindSettings(k *inspect.KindInfo) (level, timeout, batch string) {
	level, timeout, batch = "-", "-", "-"
	if k.Known { // else a file that was not given may say otherwise
		level = strconv.Itoa(int(k.Settings.Level))
	}
	if k.Settings.Timeout > 0 {
		timeout = k.Settings.Timeout.String()
	}
	if k.Settings.Batch > 0 {
		batch = strings.TrimSuffix(fmt.Sprintf("%d within %s", k.Settings.Batch, k.Settings.BatchWait), " within 0s")
	}
	return level, timeout, batch
}

// kindLimits are all limits on a kind.
func kindLimits(k *inspect.KindInfo) string {
	if len(k.Limits) == 0 {
		return "-"
	}
	limits := make([]string, len(k.Limits))
	for n := range k.Limits {
		limits[n] = allows(&k.Limits[n])
		if each := k.Limits[n].About.Each; each != "" {
			limits[n] += " each " + string(each)
		}
	}
	return strings.Join(limits, "; ")
}

// kindState is what keeps the tasks of a kind from running, or new ones from being submitted.
func kindState(k *inspect.KindInfo) string {
	switch {
	case k.Pause != nil:
		text := "paused"
		if k.Pause.Reason != "" {
			text += ": " + k.Pause.Reason
		}
		return text
	case k.Settings.Disabled:
		return "disabled"
	default:
		return "-"
	}
}
