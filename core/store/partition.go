package store

// The partition of an agent: a stable hash of its id.

// PartitionOf is the partition of an agent in a store with that many, a power of two.
func PartitionOf(agent string, partitions int) int {
	// FNV-1a, folded: written out because it runs for each task and must never change.
	h := uint64(14695981039346656037)
	for i := range len(agent) {
		h = (h ^ uint64(agent[i])) * 1099511628211
	}
	return int((h ^ h>>32) & uint64(partitions-1)) //nolint:gosec // the mask is below the number of partitions
}
