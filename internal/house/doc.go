// Package house holds what the repository as a whole has to keep: who may import whom, how much there is in one room, that documents name only
// what exists, that their links lead somewhere and their commands run. It has tests alone, which run at the root of the repository.
package house
