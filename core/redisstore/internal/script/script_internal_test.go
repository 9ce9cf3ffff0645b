package script

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// A start puts no script together and unpacks none: it knows their hashes from when they were packed, which are those of their texts.
func TestAStartReadsHashesOnly(t *testing.T) { //nolint:paralleltest // it counts allocations
	allocs := testing.AllocsPerRun(10, func() { Load(nil) })
	t.Logf("figure: %.0f allocations", allocs)
	assert.Less(t, allocs, 400.0, "some for each script")
	known, made := map[string]string{}, map[string]string{}
	of := Load(nil)
	of.Each(func(s *Script, name string, f Form) { known[string(f)+name] = s.SHA })
	of = Load(func(text string) string { return text })
	of.Each(func(s *Script, name string, f Form) { made[string(f)+name] = s.SHA })
	assert.Equal(t, made, known)
}

// What a start costs, and what it cost when it put all scripts together.
func BenchmarkLoad(b *testing.B) {
	b.Run("index", func(b *testing.B) {
		for b.Loop() {
			Load(nil)
		}
	})
	b.Run("together", func(b *testing.B) {
		for b.Loop() {
			Load(func(text string) string { return text })
		}
	})
}
