// Package snapshot reads both sides of a pass, and is the only package that reads pairs. What it returns is complete or
// says where it is not: a list that failed, was cut, or is not what was asked for is never an empty one, and a kind that
// either side cannot list is unavailable, not gone. It writes nothing and decides nothing.
//
// Take reads two API servers. FileSides reads files in their place, into the same snapshot: there, what is in no file is
// gone, since a file says nothing of what it leaves out.
package snapshot
