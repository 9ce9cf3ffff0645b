// Package reference writes docs/reference out of the code itself: the commands out of the command line's tree, the calls and their bodies out of
// openapi.json, the file out of its schema, metrics and their dashboard out of a scrape, codes and events out of the constants. A test compares the pages with what is written now, so that none can be wrong; make
// reference writes them.
package reference
