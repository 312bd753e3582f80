package scenario

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// What a file may need of its surroundings.
const (
	// NeedTenantControllers: kube-controller-manager on both sides.
	NeedTenantControllers = "tenant-controllers"
	// NeedHostNode: a node with a kubelet on the host.
	NeedHostNode = "host-node"
)

// File is a scenario file.
type File struct {
	// Name says the behaviour in a sentence.
	Name string `json:"name"`
	// Needs are what the file cannot run without: NeedTenantControllers, NeedHostNode.
	Needs []string `json:"needs,omitempty"`
	// Namespaces are made in the tenant, besides default.
	Namespaces []string `json:"namespaces,omitempty"`
	// Policy is the SyncPolicy's spec; DefaultPolicy if empty.
	Policy Object `json:"policy,omitempty"`
	// Env is added to the environment of every run of the binary.
	Env map[string]string `json:"env,omitempty"`
	// Files are written to the folder ${dir}, by name.
	Files map[string]string `json:"files,omitempty"`
	Steps []Step            `json:"steps"`
}

// Step is one step of a file. Exactly one field is set.
type Step struct {
	Apply                *Objects         `json:"apply,omitempty"`
	Patch                *Objects         `json:"patch,omitempty"`
	PatchStatus          *Objects         `json:"patchStatus,omitempty"`
	Delete               *Delete          `json:"delete,omitempty"`
	Bind                 *Bind            `json:"bind,omitempty"`
	ForgetHistory        *bool            `json:"forgetHistory,omitempty"`
	Pass                 *Pass            `json:"pass,omitempty"`
	Plan                 *Pass            `json:"plan,omitempty"`
	Expect               *Expect          `json:"expect,omitempty"`
	Mark                 *Refs            `json:"mark,omitempty"`
	Run                  *Run             `json:"run,omitempty"`
	AnnotateFromLastPass *struct{}        `json:"annotateFromLastPass,omitempty"`
	Save                 map[string]Saved `json:"save,omitempty"`
	verb                 string
	unresolved           map[string]any
}

// Object is an object, or a part of one, as the API takes it: numbers are int64
// or float64.
type Object map[string]any

// UnmarshalJSON keeps whole numbers whole.
func (o *Object) UnmarshalJSON(data []byte) error {
	return utiljson.Unmarshal(data, (*map[string]any)(o))
}

// Objects are objects of either side.
type Objects struct {
	Tenant []Object `json:"tenant,omitempty"`
	Host   []Object `json:"host,omitempty"`
}

// Ref names one object.
type Ref struct {
	APIVersion string  `json:"apiVersion"`
	Kind       string  `json:"kind"`
	Metadata   RefMeta `json:"metadata"`
}

// RefMeta is a Ref's metadata; Namespace is empty for a cluster-scoped kind.
type RefMeta struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is kind and name, for messages.
func (r Ref) String() string {
	if r.Metadata.Namespace == "" {
		return r.Kind + " " + r.Metadata.Name
	}
	return r.Kind + " " + r.Metadata.Namespace + "/" + r.Metadata.Name
}

// ref is the reference to an object.
func (o Object) ref() Ref {
	u := unstructured.Unstructured{Object: o}
	return Ref{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(),
		Metadata: RefMeta{Namespace: u.GetNamespace(), Name: u.GetName()}}
}

// Refs are references to objects of either side.
type Refs struct {
	Tenant []Ref `json:"tenant,omitempty"`
	Host   []Ref `json:"host,omitempty"`
}

// Delete is a delete step.
type Delete struct {
	Refs
	GraceSeconds *int64 `json:"graceSeconds,omitempty"`
}

// Bind is a bind step: Pods are given a node as a scheduler does it.
type Bind struct {
	Tenant []Binding `json:"tenant,omitempty"`
	Host   []Binding `json:"host,omitempty"`
}

// Binding gives one Pod a node.
type Binding struct {
	Ref  Ref    `json:"ref"`
	Node string `json:"node"`
}

// Saved is where a saved value is read.
type Saved struct {
	Side string `json:"side"`
	Ref  Ref    `json:"ref"`
	Path string `json:"path"`
}

// Pass is what a pass or a plan must come to.
type Pass struct {
	// Exit is the exit code; 0 if absent.
	Exit      int            `json:"exit,omitempty"`
	Outcome   string         `json:"outcome,omitempty"`
	Counts    map[string]int `json:"counts,omitempty"`
	Decisions []Decision     `json:"decisions,omitempty"`
	// Only: no other decision than Decisions was made.
	Only bool `json:"only,omitempty"`
	// Writes is the number of requests that changed something; nil if it is free.
	Writes *int `json:"writes,omitempty"`
}

// Decision is matched with a decision that was made, on the fields given.
type Decision struct {
	Action string `json:"action,omitempty"`
	Side   string `json:"side,omitempty"`
	Kind   string `json:"kind,omitempty"`
	Reason string `json:"reason,omitempty"`
	// Object is the tenant object's namespace/name.
	Object string `json:"object,omitempty"`
	// Host is the name on the host.
	Host string `json:"host,omitempty"`
	// Error and Message are substrings.
	Error   string `json:"error,omitempty"`
	Message string `json:"message,omitempty"`
	// Fields are a subset.
	Fields []string `json:"fields,omitempty"`
}

// Expect is what must be on either side, at once or Within a time.
type Expect struct {
	Tenant []Expectation    `json:"tenant,omitempty"`
	Host   []Expectation    `json:"host,omitempty"`
	Within *metav1.Duration `json:"within,omitempty"`
}

// Expectation is one thing that must hold. Exactly one of Has, Absent, Lacks,
// Unchanged, Count and Events is set.
type Expectation struct {
	Has       Object   `json:"has,omitempty"`
	Absent    *Ref     `json:"absent,omitempty"`
	Lacks     *Ref     `json:"lacks,omitempty"`
	Paths     []string `json:"paths,omitempty"`
	Unchanged *Ref     `json:"unchanged,omitempty"`
	// Count is an object whose list or map at Path must have Is entries.
	Count *Ref   `json:"count,omitempty"`
	Path  string `json:"path,omitempty"`
	// Events are fields of Events on the TenantCluster, of which there must be Is.
	Events Object `json:"events,omitempty"`
	Is     *int   `json:"is,omitempty"`
}

// Run is any other run of the binary.
type Run struct {
	Args      []string          `json:"args"`
	Env       map[string]string `json:"env,omitempty"`
	Exit      int               `json:"exit,omitempty"`
	Stdout    []string          `json:"stdout,omitempty"`
	Stderr    []string          `json:"stderr,omitempty"`
	NotStdout []string          `json:"notStdout,omitempty"`
}

// DefaultPolicy returns the policy of a file that brings none.
func DefaultPolicy() Object {
	resource := func(kind, direction string) any {
		return map[string]any{"apiVersion": "v1", "kind": kind, "direction": direction}
	}
	return Object{
		"conflictPolicy": "manual",
		"driftDetection": map[string]any{"enabled": true, "interval": "30s"},
		"explain":        map[string]any{"recordDecisions": true, "retain": int64(1000)},
		"resources": []any{
			resource("ConfigMap", "bidirectional"), resource("Secret", "bidirectional"),
			resource("Service", "toHost"), resource("Pod", "toHost"),
		},
	}
}
