package pictures

// The life of a task: its statuses, and what changes them.

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Change is one of status that was seen, with what made it. From is empty for a task that did not exist, To for one that is forgotten.
type Change struct{ From, To, By string }

// places are where statuses are drawn.
var places = map[string][2]int{"waiting": {110, 150}, "in_progress": {400, 150}, "completed": {650, 150}, "failed": {650, 40}, "cancelled": {650, 260}}

// routes are how changes are drawn, and where what makes them is written.
var routes = map[[2]string]struct {
	path   string
	anchor string
	x, y   int
}{
	{"", "waiting"}:              {"M20 175H106", "start", 16, 165},
	{"waiting", "in_progress"}:   {"M175 150C220 95 420 95 465 146", "middle", 320, 100},
	{"in_progress", "waiting"}:   {"M465 200C440 235 220 235 185 204", "middle", 325, 246},
	{"in_progress", "completed"}: {"M530 175H646", "middle", 588, 168},
	{"in_progress", "failed"}:    {"M530 165 646 72", "end", 592, 92},
	{"in_progress", "cancelled"}: {"M530 185 646 278", "start", 602, 226},
	{"failed", "waiting"}:        {"M715 40C690 0 180 0 160 146", "middle", 430, 46},
	{"waiting", "cancelled"}:     {"M130 200C140 400 560 400 646 292", "middle", 300, 372},
}

// Life draws the changes that were seen, with all statuses that there are.
func Life(statuses []string, seen []Change) (string, error) {
	by, forgotten := map[[2]string][]string{}, map[string]bool{}
	for _, c := range seen {
		edge := [2]string{c.From, c.To}
		switch {
		case c.From == c.To: // of its time or definition, not of its status
		case c.To == "":
			forgotten[c.From] = true
		case !slices.Contains(by[edge], c.By):
			by[edge] = append(by[edge], c.By)
		}
	}
	edges := slices.SortedFunc(maps.Keys(by), func(a, b [2]string) int { return strings.Compare(a[0]+" "+a[1], b[0]+" "+b[1]) })
	said := []string{}
	s := newSheet(790, 400, "The life of a task", "")
	for _, edge := range edges {
		route, ok := routes[edge]
		if !ok {
			return "", fmt.Errorf("the picture has no place for a change from %q to %q by %q", edge[0], edge[1], by[edge])
		}
		s.arrow(route.path)
		slices.Sort(by[edge])
		s.texts(route.anchor, route.x, route.y, by[edge]...)
		said = append(said, fmt.Sprintf("%s to %s: %s.", orNothing(edge[0]), edge[1], strings.Join(by[edge], ", ")))
	}
	for _, status := range statuses {
		at, ok := places[status]
		if !ok {
			return "", fmt.Errorf("the picture has no place for the status %s", status)
		}
		class := "b"
		if at[0] == 650 {
			class = "e"
		}
		s.box(class, at[0], at[1], 130, 50, status)
	}
	from := slices.Sorted(maps.Keys(forgotten))
	s.texts("start", 16, 392, "delete forgets a task that is "+strings.Join(from, ", "))
	said = append(said, "delete forgets a task that is "+strings.Join(from, ", ")+".")
	return strings.Replace(s.done(), `<desc id="d"></desc>`, `<desc id="d">`+strings.Join(said, " ")+`</desc>`, 1), nil
}

func orNothing(status string) string {
	if status == "" {
		return "nothing"
	}
	return status
}
