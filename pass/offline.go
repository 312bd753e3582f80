package pass

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// Files say what a plan is made of where no cluster is asked. Each is a file, or a folder of YAML and JSON files; see
// snapshot.ReadFiles.
type Files struct {
	// Tenant and Host are the objects of the two sides. Among the host's may be the TenantCluster, the SyncPolicy, the
	// Secret with the tenant's kubeconfig, and the SyncDecision.
	Tenant, Host string
	// Record is the SyncDecision, with the further pages of its history. Empty: it is among the host's files, or there is none.
	Record string
}

var (
	tenantClusterKind = schema.GroupKind{Group: policy.Group, Kind: "TenantCluster"}
	syncPolicyKind    = schema.GroupKind{Group: policy.Group, Kind: "SyncPolicy"}
	syncDecisionKind  = schema.GroupKind{Group: policy.Group, Kind: "SyncDecision"}
)

// offline is a plan made from files, on its way.
type offline struct {
	*run
	record *snapshot.Files
	// keyless is why the history's hashes cannot be compared with the files; empty where they can.
	keyless string
}

// PlanFiles makes the plan that a pass would make of two sides that are as the files have them. Of the options, Host is not
// used, and Namespace and Tenant may be empty where the host's files have exactly one TenantCluster. What a plan cannot know
// from files it assumes and says so in the log, or counts in the result's Undecided.
//
// An error is about the files or the options, and is an *InvalidError.
func PlanFiles(ctx context.Context, o Options, f Files) (Result, error) {
	started := time.Now()
	o.DryRun = true
	r := &offline{run: &run{Options: o, files: &snapshot.FileSides{}, explain: func(err error) error { return err }}}
	if err := r.readFiles(ctx, f); err != nil {
		return Result{}, &InvalidError{Err: err}
	}
	r.result.ID = started.UTC().Format("20060102T150405Z-") + utilrand.String(5)
	r.result.StartTime = metav1.NewMicroTime(started)
	r.result.Tenant, r.result.Namespace, r.result.Decisions = r.Tenant, r.Namespace, []record.Decision{}
	taken, _, err := r.take(ctx, nil)
	if err != nil {
		return Result{}, &InvalidError{Err: err} // files that could be read can be taken
	}
	for _, note := range r.files.Notes {
		r.assume(note)
	}
	r.compute(taken)
	r.finish(nil)
	return r.result, nil
}

// assume says what the plan rests on that nobody has said.
func (r *offline) assume(what string) {
	r.Log.Warn("The plan rests on an assumption", "assumption", record.Plain(what, record.MaxCause))
}

// readFiles reads all that a plan takes but the pairs themselves.
func (r *offline) readFiles(ctx context.Context, f Files) error {
	var hostErr, tenantErr, recordErr error
	r.files.Host, hostErr = snapshot.ReadFiles(f.Host)
	r.files.Tenant, tenantErr = snapshot.ReadFiles(f.Tenant)
	r.record = r.files.Host
	if f.Record != "" {
		r.record, recordErr = snapshot.ReadFiles(f.Record)
	}
	if err := errors.Join(tenantErr, hostErr, recordErr); err != nil {
		return err
	}
	if err := r.loadTarget(); err != nil {
		return err
	}
	server, err := r.loadKey()
	if err != nil {
		return err
	}
	if r.target.mapping.Workloads, err = workloads(r.Options, r.target.cluster, server); err != nil {
		return err
	}
	if *r.target.policy.Spec.Explain.RecordDecisions {
		if err := r.loadDecision(ctx, f.Record); err != nil {
			return err
		}
	}
	r.adopt()
	return nil
}

// loadTarget finds the TenantCluster and the policy.
func (r *offline) loadTarget() error {
	cluster, err := r.findCluster()
	if err != nil {
		return err
	}
	r.Namespace, r.Tenant = cluster.Namespace, cluster.Name
	if cluster.UID == "" {
		cluster.UID = r.ownerUID()
	}
	r.target = &target{cluster: cluster, policy: r.Policy, mapping: kinds.Mapping{
		Tenant: r.Tenant, HostNamespace: r.Namespace, Owner: owner(cluster),
	}}
	if r.target.policy == nil {
		r.target.policy, err = r.findPolicy(cluster)
	}
	return err
}

// findCluster finds the TenantCluster among the host's files, or makes one of the names that it would have.
func (r *offline) findCluster() (*policy.TenantCluster, error) {
	var found []snapshot.FileObject
	var names []string
	for _, one := range r.files.Host.Of(tenantClusterKind) {
		names = append(names, one.GetNamespace()+"/"+one.GetName())
		if (r.Namespace == "" || r.Namespace == one.GetNamespace()) && (r.Tenant == "" || r.Tenant == one.GetName()) {
			found = append(found, one)
		}
	}
	switch {
	case len(found) == 1:
		cluster, err := policy.TenantClusterFrom(found[0].Object)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", found[0].Where, err)
		}
		return cluster, nil
	case len(found) > 1:
		return nil, fmt.Errorf("the host's files have several TenantClusters (%s): name one by SYNCPASS_NAMESPACE and SYNCPASS_TENANT", strings.Join(names, ", "))
	case r.Namespace == "" || r.Tenant == "":
		has := "have no TenantCluster"
		if len(names) > 0 {
			has = "have only " + strings.Join(names, ", ")
		}
		return nil, fmt.Errorf("which tenant the plan is for is not known: the host's files %s: add the TenantCluster to them, or set both SYNCPASS_NAMESPACE and SYNCPASS_TENANT", has)
	}
	return &policy.TenantCluster{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Tenant}}, nil
}

// ownerUID is the UID that a TenantCluster has by what belongs to it, where files do not give it.
func (r *offline) ownerUID() types.UID {
	for _, files := range []*snapshot.Files{r.record, r.files.Host} {
		for _, object := range files.All() {
			if ref := metav1.GetControllerOf(object); object.GetNamespace() == r.Namespace && ref != nil && ref.Kind == tenantClusterKind.Kind && ref.Name == r.Tenant {
				return ref.UID
			}
		}
	}
	return unstated
}

// findPolicy finds the policy among the host's files.
func (r *offline) findPolicy(cluster *policy.TenantCluster) (*policy.SyncPolicy, error) {
	all := r.files.Host.Of(syncPolicyKind)
	name := cluster.Spec.SyncPolicyRef.Name
	var names []string
	for _, one := range all {
		names = append(names, fmt.Sprintf("%s (%s)", one.GetName(), one.Where))
		if name == "" && len(all) == 1 || name != "" && name == one.GetName() {
			parsed, err := policy.FromObject(one.Object)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", one.Where, err)
			}
			return parsed, nil
		}
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("SyncPolicy %q, which TenantCluster %s/%s names, is not among the host's files: add it to them, or name its file with --policy", name, r.Namespace, r.Tenant)
	case len(all) > 0:
		return nil, fmt.Errorf("the host's files have several SyncPolicies, %s, and no TenantCluster that names one: keep one of them, or name its file with --policy", strings.Join(names, " and "))
	}
	return nil, errors.New("there is no SyncPolicy: name its file with --policy, or add it to the host's files")
}

// loadKey finds the tenant's kubeconfig, whose credential the history's hashes are keyed with, and returns the server that
// it names. Without it, a plan can still be made.
func (r *offline) loadKey() (server string, err error) {
	r.hasher = record.NewHasher([]byte("of nobody"))
	kubeconfig, source, err := r.findKubeconfig()
	var tenant *access.Cluster
	if err == nil {
		if tenant, err = access.NewTenant(kubeconfig, access.Options{}); err != nil { // no request is sent
			err = fmt.Errorf("the tenant's kubeconfig from %s: %w", source, err)
		}
	}
	switch {
	case err != nil && r.TenantKubeconfigFile != "":
		return "", err
	case err != nil: // most people leave Secrets out
		r.keyless = err.Error()
		return "", nil
	}
	defer tenant.Close()
	r.hasher = record.NewHasher(tenant.Credential())
	return tenant.Server(), nil
}

// findKubeconfig reads the tenant's kubeconfig, and says where it is.
func (r *offline) findKubeconfig() (kubeconfig []byte, source string, err error) {
	if r.TenantKubeconfigFile == "" {
		return access.FindKubeconfigBy(r.secret, r.Namespace, r.Tenant, r.TenantKubeconfigSecret)
	}
	if kubeconfig, err = os.ReadFile(r.TenantKubeconfigFile); err != nil {
		err = fmt.Errorf("reading the tenant's kubeconfig: %w; correct --tenant-kubeconfig or SYNCPASS_TENANT_KUBECONFIG", err)
	}
	return kubeconfig, fmt.Sprintf("file %q", r.TenantKubeconfigFile), err
}

// secret finds a Secret among the host's files.
func (r *offline) secret(name string) (*corev1.Secret, error) {
	for _, one := range r.files.Host.Of(secretKind) {
		if one.GetNamespace() == r.Namespace && one.GetName() == name {
			secret := &corev1.Secret{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, secret); err != nil {
				return nil, fmt.Errorf("%s: it is no Secret: %w", one.Where, err)
			}
			return secret, nil
		}
	}
	return nil, apierrors.NewNotFound(corev1.Resource("secrets"), name)
}

// loadDecision reads the SyncDecision. A pass takes one that is damaged for lost; whoever reads a plan wants to know.
func (r *offline) loadDecision(ctx context.Context, file string) error {
	var all []*unstructured.Unstructured
	var faults []error
	next := fmt.Sprintf("get it once more: kubectl get syncdecisions -n %s -o yaml", r.Namespace)
	there := false
	for _, one := range r.record.Of(syncDecisionKind) {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, &record.SyncDecision{}); err != nil {
			faults = append(faults, fmt.Errorf("%s: SyncDecision %s/%s cannot be read: %w; %s", one.Where, one.GetNamespace(), one.GetName(), err, next))
		}
		there = there || one.GetNamespace() == r.Namespace && one.GetName() == r.Tenant
		all = append(all, one.Unstructured)
	}
	if err := errors.Join(faults...); err != nil {
		return err
	}
	if !there && file != "" {
		return fmt.Errorf("%s: there is no SyncDecision %s/%s in it; %s", file, r.Namespace, r.Tenant, next)
	}
	if !there {
		r.assume("there is no SyncDecision: no pass was made yet, and two-way pairs that differ have no history; if there is one, name its file with --record")
	}
	var err error
	if r.loaded, err = store.LoadFrom(ctx, all, r.Namespace, r.Tenant, r.target.mapping.Owner); err != nil {
		return err
	}
	for _, problem := range r.loaded.Problems {
		if page := (*record.PageError)(nil); errors.As(problem, &page) {
			faults = append(faults, fmt.Errorf("%w; %s", problem, next))
			continue
		}
		r.Log.Warn("Part of the record cannot be used", "error", problem)
	}
	known := r.loaded.History.KeyID()
	if r.keyless == "" && r.loaded.History.Pairs() > 0 && known != r.hasher.KeyID() {
		r.keyless = "the history was made with another credential than the tenant's kubeconfig has"
	}
	r.useRecord()
	return errors.Join(faults...)
}

// compute makes the plan, and of it the result.
func (r *offline) compute(taken plan.Snapshot) {
	if known := r.loaded; known != nil && known.Status.Tenant != nil && taken.TenantUID == "" {
		taken.TenantUID = known.Status.Tenant.UID // files that do not say whose they are, are the tenant's
	}
	if r.recording != nil && r.keyless != "" {
		r.forgetUnkeyed(taken)
	}
	planned := plan.Compute(r.input(taken))
	if r.result.Undecided = planned.HoldUndecided(); r.result.Undecided > 0 {
		r.Log.Warn("Some pairs are undecided, since files answer no dry run; a plan against the clusters decides them", "pairs", r.result.Undecided)
	}
	r.result.PlanID, r.result.Message = planned.GuardID, planned.GuardMessage
	r.report(planned)
}
