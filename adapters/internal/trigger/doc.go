// Package trigger is what the hosts' triggers have in common, independent of the sender: what a tick may say, how a repeated
// delivery is recognised, which tasks a message contains, and what is answered and logged about the runs.
package trigger
