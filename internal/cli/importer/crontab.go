package importer

// Crontabs: a line is a task, and its command a handler.

import (
	"fmt"
	"strings"
)

var (
	setting = pattern(`^\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*$`)
	spaces  = pattern(`\s+`)
	word    = pattern(`[A-Za-z0-9_-]+`)
)

// crontab reads a crontab line by line: settings count for the lines behind them.
func (f *Found) crontab(text, agent string, system bool) {
	var env []string
	zone := ""
	for i, line := range strings.Split(text, "\n") {
		where := fmt.Sprintf("line %d", i+1)
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if m := setting().FindStringSubmatch(line); m != nil {
			switch name, value := m[1], strings.Trim(m[2], `"'`); name {
			case "CRON_TZ", "TZ":
				zone = value
			case "MAILTO", "MAILFROM":
				f.left(where, "%s: duly sends no mail; `duly list --status failed` shows failures, and `callback:` of a task tells another system", name)
			default:
				env = append(env, "export "+name+"="+quoted(value)+"; ")
			}
			continue
		}
		f.line(where, line, agent, zone, env, system)
	}
}

// line reads a line with a schedule and a command.
func (f *Found) line(where, line, agent, zone string, env []string, system bool) {
	n := 5
	if strings.HasPrefix(line, "@") {
		n = 1
	}
	if system {
		n++
	}
	fields := spaces().Split(line, n+1)
	if len(fields) <= n {
		f.left(where, "left out: it has no command")
		return
	}
	command := fields[n]
	if system {
		n--
		f.left(where, "the user %s: a program runs as the user of the daemon", fields[n])
	}
	expr := strings.Join(fields[:n], " ")
	if expr == "@reboot" {
		f.left(where, "left out: @reboot has no time; start the program with the machine, or submit a task when it is up")
		return
	}
	if !f.cron(where, expr, zone) {
		return
	}
	if at := percent(command); at >= 0 {
		f.left(where, "what follows %% in a command is its standard input for cron: it was cut off, write it into a file")
		command = command[:at]
	}
	kind := f.kind(command)
	f.Kinds[kind] = Handler{Exec: []string{"sh", "-c", strings.Join(env, "") + strings.ReplaceAll(command, `\%`, "%")}}
	f.Tasks = append(f.Tasks, Task{Agent: agent, ID: kind, Kind: kind, Cron: expr, Zone: zone})
}

// percent is the position of the first % without a backslash before it; -1 for nowhere.
func percent(command string) int {
	for i := range len(command) {
		if command[i] == '%' && (i == 0 || command[i-1] != '\\') {
			return i
		}
	}
	return -1
}

// kind is a new name that follows from a command: that of its program.
func (f *Found) kind(command string) string {
	name := "command"
	for part := range strings.FieldsSeq(command) {
		if base := part[strings.LastIndexByte(part, '/')+1:]; !strings.Contains(part, "=") && word().MatchString(base) {
			name = word().FindString(base)
			break
		}
	}
	unique := name
	for i := 2; ; i++ {
		if _, taken := f.Kinds[unique]; !taken {
			return unique
		}
		unique = fmt.Sprintf("%s-%d", name, i)
	}
}

// quoted is a text as a shell reads it.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
