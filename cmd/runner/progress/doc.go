// Package progress tells people how passes get on while they run: a line for each that changes in place where somebody
// watches a terminal, a line in the log every ten seconds elsewhere. It tells nothing of what came out: results do.
//
// Everything goes to stderr, by one writer, so that no line is torn by another. Nothing of it outlives its pass.
package progress
