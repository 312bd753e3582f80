package report

import (
	"fmt"
	"io"
	"time"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Format is the form of the page.
type Format string

// The forms.
const (
	HTML     Format = "html"
	Markdown Format = "md"
)

// Formats are all forms, the default first.
var Formats = []Format{HTML, Markdown}

// Input is what a page is made of.
type Input struct {
	// Now is when the page is made.
	Now time.Time
	// Command is what a person types to call the runner.
	Command string
	// Tenants come in the order of the page.
	Tenants []Tenant
}

// Tenant is what the host knows about one of them.
type Tenant struct {
	Namespace, Name string
	// Policy is the one it is synced by; nil where that could not be read.
	Policy *policy.SyncPolicy
	// Status is its SyncDecision's, and History what that holds, put together from all pages. Zero and nil: nothing is
	// recorded, or nothing could be read.
	Status  record.SyncDecisionStatus
	History *record.History
	// Run is what its Lease says; nil where no pass has taken it yet, or it could not be read.
	Run *Run
	// Problems are what could not be read, and what follows from that.
	Problems []string
}

// Run is the newest pass by the tenant's Lease, which also those passes take that find nothing to record.
type Run struct {
	// Began is when that pass took the Lease.
	Began time.Time
	// Holder is who holds it now; empty where nobody does.
	Holder string
}

// Write writes the page.
func Write(w io.Writer, format Format, in Input) error {
	p := pageOf(in)
	switch format {
	case HTML:
		return writeHTML(w, p)
	case Markdown:
		return writeMarkdown(w, p)
	}
	return fmt.Errorf("a report has no form %q: choose one of %q", format, Formats)
}
