package machine

// request is what Start's side asks of the machine's first process: a JSON object
// on its standard input, with one of these fields. It answers with one report.
type request struct {
	Mount []Mount
	Run   *Process
}

// report comes back on standard output: with Exited the news that a process has
// ended, otherwise the answer to the oldest unanswered request, in Error ("" for done).
type report struct {
	Error  string
	Exited *ExitError
}

// Mount is one mount in the machine's own mount namespace.
type Mount struct {
	// Source is a file or folder, to be bound to Target, unless there is a Type.
	Source string
	// Target must exist.
	Target string
	// Type is a file system, "proc" for example.
	Type string
	// ReadOnly forbids writes below Target, though not below what is mounted there.
	ReadOnly bool
}

// Process is a program to run in the machine. Paths are the machine's.
type Process struct {
	// Name is what ExitError calls it.
	Name string
	// Args are the program's path and its arguments.
	Args []string
	// Env is added to the environment that the machine was started with.
	Env []string
	// Log is the file that its output is appended to.
	Log string
}

// ExitError says that a process ended before the machine was stopped.
type ExitError struct {
	Name string
	// Status is its exit code or the signal that killed it, in words.
	Status string
}

func (e *ExitError) Error() string { return e.Name + " ended by itself (" + e.Status + ")" }
