// Package scenario reads scenario files and runs them, black-box: the built
// runner binary against two real API servers. One file is one behaviour, told in
// steps: objects are put on either side, a pass is run, and what it said and what
// is then on both sides is compared with what the file expects.
//
// A file is read strictly, so that a misspelt expectation is an error and not one
// that always holds. Before each file the surroundings are laid anew, and whatever
// it made is removed after it.
//
// The package sees syncpass as its users do: through the binary's arguments,
// environment, output and exit code, and through the Kubernetes API. It must not
// import any package of syncpass outside e2e.
package scenario
