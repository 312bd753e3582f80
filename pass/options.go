package pass

import (
	"context"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// Options say which tenant a pass is over and within which bounds it works.
type Options struct {
	// Host is the way to the host cluster, shared by all tenants of a process.
	Host *access.Cluster
	// Namespace and Tenant name the TenantCluster; the namespace is also where all its mirrors live.
	Namespace, Tenant string
	// TenantKubeconfigFile is the tenant's kubeconfig on disk. Empty: it comes from a Secret.
	TenantKubeconfigFile string
	// TenantKubeconfigSecret names that Secret, in Namespace. Empty: the usual names are tried in turn.
	TenantKubeconfigSecret string
	// Policy is used instead of the one that the TenantCluster names. Nil: the TenantCluster's.
	Policy *policy.SyncPolicy
	// DryRun plans and reports, and writes nothing anywhere, not even the Lease.
	DryRun bool
	// Changes asks a dry run for what each decision would change, beside the decisions.
	Changes bool

	// RenderedInterval is the interval that whatever starts passes from outside was made for; 0 where that is not known.
	// With RenderedForAll it was made for several tenants, and is the shortest of their intervals.
	RenderedInterval time.Duration
	RenderedForAll   bool

	// PassTimeout, LeaseDuration and RequestTimeout nest: request < lease < pass.
	PassTimeout, LeaseDuration, RequestTimeout time.Duration
	// Concurrency is how many writes may be in flight.
	Concurrency int
	// MaxDeletePercent is the share of the mirrors that one pass may delete without being asked, judged from ten
	// deletes on.
	MaxDeletePercent int
	// RetireKinds deletes the mirrors of kinds that left the policy.
	RetireKinds bool

	// WorkloadServiceAccount is the host ServiceAccount that mirrored Pods run under. Empty: default.
	WorkloadServiceAccount string
	// TenantAPIEndpoint is where Pods reach the tenant's API server: host:port or a URL. Empty: the TenantCluster's
	// status.endpoint, else the server of the tenant's kubeconfig.
	TenantAPIEndpoint string
	// TenantDNS is the address of the tenant's DNS server. Empty: Pods use the host's.
	TenantDNS string
	// PodSecurity is the Pod Security level that Pods are held to: privileged, baseline or restricted. Empty: baseline.
	PodSecurity string
	// PriorityClasses are the priority classes of the host that Pods may name.
	PriorityClasses []string

	// UserAgent names this program to the tenant's API server.
	UserAgent string
	// Identity names this process in the Lease and in Events.
	Identity string
	Log      *slog.Logger

	// Begin is told that a phase begins. The phase goes on under the context that it returns, and its end, with what it
	// failed of, is told to the function. PhaseRecord and PhaseEvents go on side by side. Nil: nobody is told.
	Begin func(ctx context.Context, phase Phase) (context.Context, func(error))
	// Progress is told during PhaseApply how many of the planned writes have had an answer, from many goroutines at once.
	// Nil: nobody is told.
	Progress func(done, total int)
	// ObserveTenant is told of every request to the tenant's API server; whoever made Host sees to the host's. Nil: nobody
	// is told.
	ObserveTenant access.Observe
}

// Result is what a pass did, in the form that `-o json` prints.
type Result struct {
	ID        string            `json:"id"`
	Tenant    string            `json:"tenant"`
	Namespace string            `json:"namespace"`
	Outcome   record.Outcome    `json:"outcome"`
	Message   string            `json:"message"`
	PlanID    string            `json:"planID"`
	StartTime metav1.MicroTime  `json:"startTime"`
	EndTime   metav1.MicroTime  `json:"endTime"`
	Counts    record.Counts     `json:"counts"`
	Decisions []record.Decision `json:"decisions"`

	// Changes are what each of Decisions would change, in their order; nil where nobody asked for it.
	Changes [][]Change `json:"-"`
	// Undecided counts the decisions, all of them to skip, that hang on what nobody could be asked.
	Undecided int `json:"-"`
	// Schedule is the policy's, for the caller that decides when the next pass is due; nil where the policy could
	// not be read.
	Schedule *policy.Schedule `json:"-"`
	// Err is the cause of an outcome of Invalid, Locked, Unreachable or Stopped; errors.Join of all there are.
	Err error `json:"-"`
}
