package equal

// Fences, which each store numbers by itself.

import (
	"slices"

	"github.com/seed-6f6f2c11/duly/core/store"
)

// claimName names a claim: fences are numbered by partition.
type claimName struct {
	partition int
	fence     store.Fence
}

// fences are those of b, by the claim of a that got the same.
type fences map[claimName]store.Fence

// ofB are runs with the fences of b.
func (f fences) ofB(runs []store.Run) []store.Run {
	runs = slices.Clone(runs)
	for i := range runs {
		runs[i].Fence = f[claimName{runs[i].Partition, runs[i].Fence}]
	}
	return runs
}
