package dulyfile

// Patterns of agents: an id, or the beginning of one and a star.

import "strings"

// pattern reads an agent, or a pattern of agents. A star anywhere but at the end would be taken for more than it means.
func pattern(into *string) reader {
	return func(p place) error {
		if err := text(into)(p); err != nil || p.empty() {
			return err
		}
		return checkPattern(p, *into)
	}
}

// checkPattern refuses an invalid pattern.
func checkPattern(p place, pattern string) error {
	if i := strings.IndexByte(pattern, '*'); i >= 0 && i < len(pattern)-1 {
		return p.fail("%q must not have a * before its end: use an agent's id, or the beginning of ids and *, such as team-*", pattern)
	}
	return nil
}

// covers reports whether a pattern matches an agent.
func covers(pattern, agent string) bool {
	beginning, open := strings.CutSuffix(pattern, "*")
	return pattern == agent || open && strings.HasPrefix(agent, beginning)
}
