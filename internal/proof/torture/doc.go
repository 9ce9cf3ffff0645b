// Package torture runs duly as a platform does, in several processes on one Redis, and takes it apart while it works: workers and
// Redis are killed and frozen at random, also right before and right after each call of the store. Its tests then hold what the
// handlers have written down against what the tracker says.
//
// It has no code but tests: the test binary starts itself again as the workers.
package torture
