// Command runner carries out SyncPolicies between tenant control planes and a host cluster: one complete pass for
// each selected tenant per start, or passes on an internal schedule.
//
// This package is the only one that reads the environment, knows exit codes, prints, and ends the process. It decides
// nothing about objects: package pass does, and hands back results.
package main
