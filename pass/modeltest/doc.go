// Package modeltest is the world around a pass, for tests: two API servers in memory, the people who edit objects there,
// what can go wrong with a pass, and the rules that no pass may break, whatever happened. It draws random histories,
// lives through them, and writes them down in sentences.
//
// It must not know how a pass works: what is tested brings that itself, as an Engine, and is judged by what it writes
// and says. The rules see what a pass cannot: when the sides last agreed, and who wrote what.
package modeltest
