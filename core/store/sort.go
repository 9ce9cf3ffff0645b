package store

// Sorting, for answers of which there are few.

import "sort"

// Sort sorts by a comparison, in no order among equals. slices.SortFunc is made anew for each type, which adds 7 to 11 kB to a program; this
// is made once, and each cold start of a function loads less.
func Sort[T any](all []T, compare func(a, b *T) int) {
	sort.Slice(all, func(i, k int) bool { return compare(&all[i], &all[k]) < 0 })
}
