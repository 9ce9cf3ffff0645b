package main_test

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// section is the text of the README below one of its headings.
func section(t *testing.T, heading string) string {
	t.Helper()
	data, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, text, found := strings.Cut(string(data), "\n## "+heading+"\n")
	require.True(t, found, "the README has no section %q", heading)
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// rows are the rows of the tables of a text, without their headings.
func rows(text string) [][]string {
	var all [][]string
	table := false
	for line := range strings.SplitSeq(text, "\n") {
		inner, ok := strings.CutPrefix(line, "|")
		switch {
		case !ok:
			table = false
		case strings.HasPrefix(inner, "---"):
			table = true
		case table:
			var cells []string
			for cell := range strings.SplitSeq(strings.TrimSuffix(inner, "|"), "|") {
				cells = append(cells, strings.TrimSpace(cell))
			}
			all = append(all, cells)
		}
	}
	return all
}

var quoted = regexp.MustCompile("`([^`]+)`")

// Every parameter of the template is in the README's table with its default, and no other is.
func TestTheReadmeHasTheParameters(t *testing.T) {
	t.Parallel()
	read, err := readTemplate(template(t))
	require.NoError(t, err)
	parameters := dictAt(read, "Parameters")
	var described []string
	for _, row := range rows(section(t, "Parameters")) {
		for _, m := range quoted.FindAllStringSubmatch(row[0], -1) {
			described = append(described, m[1])
			assert.NotEmpty(t, row[2], "what %s is for", m[1])
			assert.Equal(t, fmt.Sprint(at(parameters, m[1], "Default")), strings.Trim(row[1], "`"), "the default of %s", m[1])
		}
	}
	slices.Sort(described)
	assert.Equal(t, keys(parameters), described)
}

// Every alarm of the template is in the README with what to do, and no other is.
func TestTheReadmeHasTheAlarms(t *testing.T) {
	t.Parallel()
	read, err := readTemplate(template(t))
	require.NoError(t, err)
	var alarms, described []string
	for name, r := range dictAt(read, "Resources") {
		if at(r, "Type") == "AWS::CloudWatch::Alarm" {
			alarms = append(alarms, name)
		}
	}
	for _, row := range rows(section(t, "Alarms")) {
		described = append(described, strings.Trim(row[0], "`"))
		assert.NotEmpty(t, row[1])
		assert.NotEmpty(t, row[2])
	}
	assert.ElementsMatch(t, alarms, described)
}

// The costs add up, and the prices have a place and a date.
func TestTheReadmesCosts(t *testing.T) {
	t.Parallel()
	text := section(t, "What it costs")
	prices, _, _ := strings.Cut(text, "\n\n|")
	assert.Regexp(t, `\b[a-z]{2}-[a-z]+-\d\b`, prices, "the region")
	assert.Regexp(t, `\b(January|February|March|April|May|June|July|August|September|October|November|December) 20\d\d\b`, prices)
	sums := 0
	for column := 1; column <= 2; column++ {
		var around, all float64
		for _, row := range rows(text) {
			if len(row) != 3 {
				continue // a table of what is assumed
			}
			name, cell := strings.Trim(row[0], "*"), strings.Trim(row[column], "*")
			if expression, value, ok := strings.Cut(cell, " = "); ok {
				sums++
				assert.Equal(t, value, written(value, calculate(t, expression)), "%s: %s", name, cell)
				cell = value
			}
			dollars, ok := strings.CutPrefix(cell, "$")
			switch {
			case !ok:
			case strings.HasPrefix(name, "Lambda and what"):
				assert.Equal(t, cell, written(cell, around), name)
			case name == "all":
				assert.Equal(t, cell, written(cell, all), name)
			default:
				all += number(t, dollars)
				if !strings.HasPrefix(name, "Redis") {
					around += number(t, dollars)
				}
			}
		}
		assert.Positive(t, around)
	}
	assert.GreaterOrEqual(t, sums, 12)
}

// calculate works out sums of products and quotients.
func calculate(t *testing.T, expression string) float64 {
	t.Helper()
	sum := 0.0
	for term := range strings.SplitSeq(expression, " + ") {
		words := strings.Fields(term)
		product := number(t, words[0])
		for i := 1; i+1 < len(words); i += 2 {
			switch words[i] {
			case "x":
				product *= number(t, words[i+1])
			case "/":
				product /= number(t, words[i+1])
			default:
				t.Fatalf("%s: what is %s?", expression, words[i])
			}
		}
		sum += product
	}
	return sum
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(strings.ReplaceAll(text, ",", ""), 64)
	require.NoError(t, err)
	return n
}

// written is a number in the form of another: dollars have cents, whole numbers commas.
func written(like string, n float64) string {
	if strings.HasPrefix(like, "$") {
		return fmt.Sprintf("$%.2f", math.Round(n*100)/100)
	}
	digits := strconv.FormatFloat(math.Round(n), 'f', 0, 64)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
