package store

// Sorting and searching, made once for all types.

import (
	"slices"
	"sort"
)

// Sort sorts by a comparison, in no order among equals. slices.SortFunc is compiled again for each type, which adds 7 to 11 kB to a program; this
// is compiled once, and each cold start of a function loads less.
func Sort[T any](all []T, compare func(a, b *T) int) {
	sort.Slice(all, func(i, k int) bool { return compare(&all[i], &all[k]) < 0 })
}

// Among reports whether one word is among others. slices.Contains is compiled again for each type of slice, as of statuses and of periods.
func Among[E ~string](one E, all []E) bool {
	return slices.Contains(all, one)
}
