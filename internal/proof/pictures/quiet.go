package pictures

// Quiet hours: a day and a half of an agent, with and without them.

import (
	"strings"
	"time"
)

// Day is the starts of an agent's task from a time on.
type Day struct {
	Name   string
	Starts []time.Time
}

// Quiet draws the starts of days beside each other: hours is how long, and quiet are the times between which nothing starts.
func Quiet(from time.Time, hours int, quiet [][2]time.Time, days []Day) string {
	said := []string{}
	for _, d := range days {
		times := []string{}
		for _, at := range d.Starts {
			times = append(times, at.Format("15:04"))
		}
		said = append(said, d.Name+" starts at "+strings.Join(times, ", ")+".")
	}
	s := newSheet(760, 60+60*len(days)+30, "Quiet hours: what would start within them starts at their end", strings.Join(said, " "))
	x := func(at time.Time) int { return 150 + int(at.Sub(from).Minutes())*590/(hours*60) }
	bottom := 40 + 60*len(days)
	for _, q := range quiet {
		s.add(`<rect class="q" x="%d" y="30" width="%d" height="%d"/>`+"\n", x(q[0]), x(q[1])-x(q[0]), bottom-30)
		s.texts("middle", (x(q[0])+x(q[1]))/2, 22, "quiet "+q[0].Format("15:04")+"-"+q[1].Format("15:04"))
	}
	for i, d := range days {
		y := 65 + 60*i
		s.texts("start", 12, y+4, d.Name)
		s.add(`<path class="l" d="M150 %dH740"/>`+"\n", y)
		for _, at := range d.Starts {
			s.dot(x(at), y)
		}
	}
	for at := from; !at.After(from.Add(time.Duration(hours) * time.Hour)); at = at.Add(4 * time.Hour) {
		s.texts("middle", x(at), bottom+20, at.Format("15:04"))
	}
	return s.done()
}
