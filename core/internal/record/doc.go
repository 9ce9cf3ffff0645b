// Package record encodes everything that core stores: the body of a task, which never changes; its state, which its runs change;
// what is kept of it once it has finished; who paused or cancelled it; and its failed runs in the statistics of its kind.
//
// What is stored is a list of fields: a tag, which is the field's number times two plus one if it holds bytes, then a varint, or a
// length and bytes. Zero values are not written, and a reader skips fields that it does not know, so that binaries of two
// versions can share a store. Each field is defined once, in the table of its record: its number, and what it is read into and
// written from. Numbers are never used again, and rows are never moved: two binaries compare bodies byte by byte.
package record
