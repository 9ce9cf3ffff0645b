package redisstore_test

import (
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/seed-6f6f2c11/duly/core/redisstore"
)

// ruleLine is a comment that names the rules that the statement behind it keeps.
var ruleLine = regexp.MustCompile(`(?m)^ *-- rule: ([a-z -]+)$`)

// A rule that a plain script keeps in its own way is in the full script too, or in a part of it, by the same name: a change of one side finds the
// other.
func TestRulesAreOnBothSides(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scripts/*.lua")
	require.NoError(t, err)
	plain, full, empty := map[string][]string{}, map[string][]string{}, slices.Collect(maps.Keys(redisstore.Packed()))
	empty = slices.DeleteFunc(empty, func(name string) bool { return !strings.HasPrefix(name, "plain") })
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".lua")
		for _, m := range ruleLine.FindAllStringSubmatch(redisstore.Part(name), -1) {
			for rule := range strings.FieldsSeq(m[1]) {
				side := full
				if strings.HasPrefix(name, "plain") {
					side = plain
				}
				assert.NotContains(t, side[rule], name, "%s names the rule %s twice", name, rule)
				side[rule] = append(side[rule], name)
			}
			empty = slices.DeleteFunc(empty, func(other string) bool { return other == name })
		}
	}
	assert.Equal(t, slices.Sorted(maps.Keys(plain)), slices.Sorted(maps.Keys(full)), "a rule is on one side only")
	assert.Empty(t, empty, "plain scripts that name no rule")
	for _, rule := range slices.Sorted(maps.Keys(plain)) {
		t.Logf("%-22s %-36s %s", rule, strings.Join(plain[rule], " "), strings.Join(full[rule], " "))
	}
}
