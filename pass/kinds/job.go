package kinds

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/syncpass/syncpass/record"
)

// job: an API server makes a Job's selector of the Job's UID, and labels its template to match, unless it is told not to. So
// each side has its own (https://kubernetes.io/docs/concepts/workloads/controllers/job/#job-labels).
type job struct{ templated }

// generatedLabels are the labels of a Job's template that an API server adds.
var generatedLabels = []string{"controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name"}

// Project takes over what the host has generated.
func (j job) Project(m Mapping, tenant, host, mirror *unstructured.Unstructured) {
	j.templated.Project(m, tenant, host, mirror)
	if host == nil || manual(mirror.Object) || child(mirror.Object, "spec") == nil {
		return
	}
	if selector := child(child(host.Object, "spec"), "selector"); selector != nil {
		child(mirror.Object, "spec")["selector"] = runtime.DeepCopyJSON(selector)
	}
	labels := child(child(j.template(mirror), "metadata"), "labels")
	takeAbsent(labels, child(child(j.template(host), "metadata"), "labels"), generatedLabels...)
}

// Disown removes what is generated.
func (j job) Disown(_ record.Side, content Content) {
	if manual(content) {
		return
	}
	spec := child(content, "spec")
	delete(spec, "selector")
	metadata := child(child(spec, "template"), "metadata")
	for _, label := range generatedLabels {
		delete(child(metadata, "labels"), label)
	}
}

// manual says that a Job's author wrote the selector.
func manual(content Content) bool { return child(content, "spec")["manualSelector"] == true }
