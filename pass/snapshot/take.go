package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// kindsAtOnce is how many kinds are listed side by side.
const kindsAtOnce = 4

// Request says what to read.
type Request struct {
	Host, Tenant *access.Cluster
	// Namespace is the host namespace that all mirrors are in.
	Namespace string
	// Mapping tells which Secrets hold Pods' tokens.
	Mapping kinds.Mapping
	// Resources are the policy's kinds, Retired those that left it and whose mirrors are to go.
	Resources []policy.Resource
	Retired   []schema.GroupKind
	// Known is what the plan will be computed from, but for the snapshot. With it, only the content of pairs that may have
	// changed is read; nil reads everything.
	Known *plan.Input
	// Sides are what Meet found; nil has Take ask by itself.
	Sides *Sides

	left *budget // of the tenant
}

// Sides are what both API servers serve, and who the tenant is.
type Sides struct {
	host, tenant served
	tenantUID    string
}

// Resources tells how each kind is served on a side.
type Resources map[record.Side]map[schema.GroupVersionKind]schema.GroupVersionResource

// UnreachableError says which side did not answer.
type UnreachableError struct {
	Side record.Side
	Err  error
}

func (e *UnreachableError) Error() string {
	text := fmt.Sprintf("reading the %s: %v", e.Side, e.Err)
	if apierrors.IsUnauthorized(e.Err) {
		text += fmt.Sprintf("; the %s does not accept the credentials, or no longer: renew those in its kubeconfig", e.Side)
	} else if access.Unreachable(e.Err) {
		text += fmt.Sprintf("; is the %s's API server up, and can this machine reach the address in the kubeconfig?", e.Side)
	}
	return text
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Meet asks both sides what Take has to know first. An error means what it means there.
func Meet(ctx context.Context, r Request) (*Sides, error) {
	var met Sides
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		met.host, err = discover(groupCtx, r.Host.Discovery(), r.versions())
		return unreachable(record.Host, err)
	})
	group.Go(func() (err error) {
		met.tenant, err = discover(groupCtx, r.Tenant.Discovery(), r.versions())
		return unreachable(record.Tenant, err)
	})
	group.Go(func() (err error) {
		met.tenantUID, err = identity(groupCtx, r.Tenant)
		return unreachable(record.Tenant, err)
	})
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return &met, nil
}

// Take reads both sides. An error means that a side cannot be reached at all, or refuses the credentials; anything less
// makes the kinds concerned unavailable in the snapshot.
func Take(ctx context.Context, r Request) (taken plan.Snapshot, resources Resources, err error) {
	r.left = newBudget(maxTenantBytes)
	if r.Sides == nil {
		if r.Sides, err = Meet(ctx, r); err != nil {
			return plan.Snapshot{}, nil, err
		}
	}
	host := r.Sides.host
	if len(r.Retired) > 0 { // whose versions are not known
		if host, err = discoverAll(ctx, r.Host.Discovery()); err != nil {
			return plan.Snapshot{}, nil, unreachable(record.Host, err)
		}
	}
	taken.TenantUID = r.Sides.tenantUID
	taken.Kinds, resources = kindsOf(r, host, r.Sides.tenant)
	if err := readKinds(ctx, r, taken.Kinds, resources); err != nil {
		return plan.Snapshot{}, nil, err
	}
	if err := readDisturbed(ctx, r, taken, resources); err != nil {
		return plan.Snapshot{}, nil, err
	}
	if err := readNodes(ctx, r, taken.Kinds, resources); err != nil {
		return plan.Snapshot{}, nil, err
	}
	return taken, resources, nil
}

// kindsOf are the kinds to be read, and how each is served; one that a side does not serve is unavailable.
func kindsOf(r Request, host, tenant served) ([]plan.KindSnapshot, Resources) {
	var all []plan.KindSnapshot
	resources := Resources{record.Host: {}, record.Tenant: {}}
	for _, resource := range r.Resources {
		kind := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind)
		found := plan.KindSnapshot{Resource: resource}
		resources[record.Tenant][kind], found.Unavailable = tenant.resource("tenant", kind)
		if found.Unavailable == "" {
			resources[record.Host][kind], found.Unavailable = host.resource("host", kind)
		}
		all = append(all, found)
	}
	for _, retired := range r.Retired {
		if kind, ok := host.versionOf(retired); ok {
			version, name := kind.ToAPIVersionAndKind()
			found := plan.KindSnapshot{Resource: policy.Resource{APIVersion: version, Kind: name, Direction: policy.ToHost}, Retired: true}
			resources[record.Host][kind], found.Unavailable = host.resource("host", kind)
			if kind == nodeKind && found.Unavailable == "" { // it is the tenant that has something to retire
				resources[record.Tenant][kind], found.Unavailable = tenant.resource("tenant", kind)
			}
			all = append(all, found)
		}
	}
	return all, resources
}

// versions are the group versions of the policy's kinds.
func (r Request) versions() []schema.GroupVersion {
	var versions []schema.GroupVersion
	for _, resource := range r.Resources {
		version := schema.FromAPIVersionAndKind(resource.APIVersion, resource.Kind).GroupVersion()
		if !slices.Contains(versions, version) {
			versions = append(versions, version)
		}
	}
	return versions
}

// readKinds lists the kinds that both sides serve, some side by side.
func readKinds(ctx context.Context, r Request, all []plan.KindSnapshot, resources Resources) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(kindsAtOnce)
	if r.Known != nil {
		known := *r.Known
		known.Snapshot.Kinds = slices.Clone(all) // as they are before anything is read: what is asked of them is what the policy says
		r.Known = &known
	}
	for i := range all {
		if all[i].Unavailable == "" && !isNode(&all[i]) {
			group.Go(func() error { return readKind(groupCtx, r, &all[i], resources) })
		}
	}
	return group.Wait()
}

// readKind reads of one kind what may have changed, or everything where that cannot be told.
func readKind(ctx context.Context, r Request, k *plan.KindSnapshot, resources Resources) error {
	if k.Resource.APIVersion == "v1" && k.Resource.Kind == "Pod" && !k.Retired {
		var err error
		if k.Tokens, err = readTokens(ctx, r); err != nil {
			return failed(k, record.Host, err)
		}
	}
	if r.Known != nil {
		if survey := plan.NewSurvey(*r.Known, *k); survey != nil {
			if err := readChanged(ctx, r, k, survey, resources); !errors.Is(err, errNoMetadata) {
				return err
			}
		}
	}
	return readWhole(ctx, r, k, resources)
}

// readWhole lists one kind, the host first: a mirror that was listed before its source can only look orphaned if the
// source is really gone.
func readWhole(ctx context.Context, r Request, k *plan.KindSnapshot, resources Resources) error {
	host, tenant := collections(r, k, resources)
	mirrors, err := host.all(ctx)
	if err != nil {
		return failed(k, record.Host, err)
	}
	for name, cause := range mirrors.malformed {
		return failed(k, record.Host, fmt.Errorf("%w: object %s: %s", errNotAList, name, cause))
	}
	k.Host = mirrors.objects
	if k.Retired {
		return nil
	}
	objects, err := tenant.all(ctx)
	if err != nil {
		return failed(k, record.Tenant, err)
	}
	k.Tenant, k.Malformed, k.TenantVersion = objects.objects, objects.malformed, objects.version
	return nil
}

// readTokens lists the Secrets with the tokens of the tenant's Pods.
func readTokens(ctx context.Context, r Request) ([]plan.TokenSecret, error) {
	list, err := r.Host.Core().Secrets(r.Namespace).List(ctx, metav1.ListOptions{LabelSelector: r.Mapping.TokenSelector()})
	if err != nil {
		return nil, fmt.Errorf("the Secrets with Pods' tokens: %w", err)
	}
	tokens := make([]plan.TokenSecret, 0, len(list.Items))
	for _, secret := range list.Items {
		tokens = append(tokens, tokenSecret(secret.Name, secret.Annotations, secret.OwnerReferences))
	}
	return tokens, nil
}

// failed makes a kind unavailable where its list was answered but unusable, and returns an error where nothing was
// answered at all.
func failed(k *plan.KindSnapshot, side record.Side, err error) error {
	var answer apierrors.APIStatus
	answered := errors.As(err, &answer) || errors.Is(err, errNotAList) || errors.Is(err, access.ErrBodyTooLarge) || errors.Is(err, errTooMuch)
	if !answered || apierrors.IsUnauthorized(err) {
		return &UnreachableError{Side: side, Err: err}
	}
	k.Host, k.Tenant, k.Quiet, k.Apart, k.Others = nil, nil, nil, nil, nil
	k.Unavailable = fmt.Sprintf("listing it on the %s failed", side)
	k.Error = record.Plain(err.Error(), record.MaxCause)
	return nil
}

// identity is the UID of the tenant's kube-system namespace, empty where it has none.
func identity(ctx context.Context, tenant *access.Cluster) (string, error) {
	namespace, err := tenant.Core().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("reading its kube-system namespace: %w", err)
	}
	return string(namespace.UID), nil
}

func unreachable(side record.Side, err error) error {
	if err == nil {
		return nil
	}
	return &UnreachableError{Side: side, Err: err}
}
