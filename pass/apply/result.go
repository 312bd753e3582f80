package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

// Result is what became of a step.
type Result struct {
	Step *plan.Step
	// Decision is the step's, or the Skip that it came to.
	Decision record.Decision
	// Written are the objects as the API servers returned them, by side; none for a delete and where nothing was written.
	Written map[record.Side]*unstructured.Unstructured
	// Agreed is what Writer.Agree made of them.
	Agreed *record.Baseline
	// Applied says that the write is known to have landed. Unknown says that nobody can tell: no answer came back.
	Applied, Unknown bool

	// address is the cluster IP of a Service that was written on the host. Of all that is written, the made map of Execute
	// keeps it.
	address string
}

func (r *Result) wrote(side record.Side, object *unstructured.Unstructured) {
	if r.Written == nil {
		r.Written = map[record.Side]*unstructured.Unstructured{}
	}
	r.Written[side] = object
}

// conclude keeps of a step what is needed of it after it was carried out.
func (w *Writer) conclude(result *Result) {
	if made := result.Written[record.Host]; made != nil {
		result.address = kinds.ClusterIP(made)
	}
	if w.Agree == nil {
		return
	}
	if result.Applied {
		result.Agreed = w.Agree(result)
	}
	step := result.Step
	step.Want, step.Have, step.Source, step.Before, step.Then, step.Complete = nil, nil, nil, nil, nil, nil
	result.Written = nil
}
