package door

// Which ids of another runtime can be sent to it in a path.

import "regexp"

const longestID = 256

var ids = regexp.MustCompile(`^[A-Za-z0-9_:-][A-Za-z0-9_:.-]*$`)

// IsID reports whether an id of another runtime can be a part of a path, in which it must not mean anything else. [Chars] says what it consists of.
func IsID(id string) bool { return len(id) <= longestID && ids.MatchString(id) }

// Chars is what an id consists of that [IsID] allows, for a refusal.
const Chars = "letters, digits, - _ : and ., at most 256"
