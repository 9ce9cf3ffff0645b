// Package filestore is a [store.Store] in a folder: what a single process needs in place of a Redis.
//
// It is a memstore and a journal of the calls that change it. A call is answered once it is in the journal: the calls of all callers that wait share
// one write and one fsync. A process that starts again reads the last snapshot and makes the calls behind it once more, at the times they
// were made: a memstore reads no other clock and no chance, so the state is the same, byte by byte, and a checksum in the journal says so.
//
//	snapshot-000007   the state after all segments before 7
//	journal-000007    calls since then, in frames
//	journal-000008    calls since the process was started again
//	lock              held by the process that has the folder open
//	reserve           room for ends and deletes when the disk is full
//
// What can happen to files:
//   - The process or the machine dies: the last frame may be cut off. It was never answered, and is dropped with a warning.
//   - A bit flips: the frame's checksum finds the bit, and it is flipped back, with a warning.
//   - More is damaged: [DamagedError], with the place. Nothing is skipped.
//   - A newer version has written them: [NewerError]. Nothing is changed.
//   - The disk is full: submits fail with [store.ErrFull]; everything else goes on, out of the reserve.
//   - A write or an fsync fails: all calls fail until the folder could be read again, which is tried each second. What was not answered may or may not be there.
package filestore
