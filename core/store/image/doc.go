// Package image writes Go values as bytes and reads them back, with their unexported fields: it is how a store in memory is kept in a file.
//
// A [Format] knows a type, once for all its values. What it writes has no names in it; [Format.Schema] has them, and is stored once beside
// the values; a struct that has moved to another package keeps the name that it was first written by. [Format.Reader] reads what another version
// has written by its schema: fields are found by their names, those that are new are zero, and a field that this version does not know is an
// error, as it would be lost.
//
// Values are trees, but for the pointers to shared types, which keep their identity: two pointers to one value are so again after reading. These
// values are written one after the other, not within one another, so that nothing recurses however long their chains are.
//
// The same value always gives the same bytes: maps are written in the order of their keys.
//
// A field tagged `image:"-"` is neither written nor read. Interfaces, functions and channels cannot be written: a type that has one in a field
// without that tag makes [Of] panic, as this is a mistake in the program.
package image
