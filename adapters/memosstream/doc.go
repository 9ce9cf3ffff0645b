// Package memosstream takes in the messages that MemOS's producers write to its Redis streams, so that these need no change: each
// becomes the task that POST /product/scheduler/submit makes of it, and MemOS's status tracker is kept up to date.
//
// A message is acknowledged once its task is stored. Delivered again it is the same task, by its item_id, or by the id of its entry if it
// has none.
package memosstream
