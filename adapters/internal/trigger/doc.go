// Package trigger is what the hosts' triggers have in common, whoever sends them: what a tick may say, how the repeat of a
// delivery is recognised, which tasks a message brings, and what is answered and logged about the runs.
package trigger
