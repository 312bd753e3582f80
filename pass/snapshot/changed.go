package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/record"
)

const (
	// getsAtOnce is how many objects of one kind and side are read side by side.
	getsAtOnce = 16
	// getsAnyway is how many objects are read one by one, whatever there is besides.
	getsAnyway = 4
	// getOutweighs is how many objects of a list cost as much as one GET, measured with ConfigMaps of 1 KiB: from a quarter
	// of a kind on, the whole list is the cheaper way.
	getOutweighs = 4
)

// readChanged reads the metadata of a kind on both sides, and the content of those objects alone whose pairs may have
// changed. It returns errNoMetadata where a server gives none.
func readChanged(ctx context.Context, r Request, k *plan.KindSnapshot, survey *plan.Survey, resources Resources) error {
	host, tenant := collections(r, k, resources)
	side, err := surveySides(ctx, k, survey, host, tenant)
	if errors.Is(err, errNoMetadata) {
		return err
	}
	if err != nil {
		return failed(k, side, err)
	}
	found := survey.Result()
	k.Quiet, k.Apart, k.Others = found.Quiet, found.Apart, found.Others
	host.forgets = func(mirror *unstructured.Unstructured) bool {
		return found.Orphans[types.NamespacedName{Namespace: mirror.GetNamespace(), Name: mirror.GetName()}]
	}
	return fetchBoth(ctx, k, host, tenant, found.Host, found.Tenant)
}

// collections are what there is of a kind on both sides.
func collections(r Request, k *plan.KindSnapshot, resources Resources) (host, tenant collection) {
	kind := schema.FromAPIVersionAndKind(k.Resource.APIVersion, k.Resource.Kind)
	host = collection{client: r.Host.Discovery().RESTClient(), resource: resources[record.Host][kind], kind: kind.Kind, namespace: r.Namespace}
	tenant = collection{client: r.Tenant.Discovery().RESTClient(), resource: resources[record.Tenant][kind], kind: kind.Kind, left: r.left}
	if _, asks := kinds.For(kind.GroupKind()).(kinds.AsksWriters); r.Known != nil && !asks {
		tenant.forgets = func(object *unstructured.Unstructured) bool {
			key := record.Key{Group: kind.Group, Kind: kind.Kind, Namespace: object.GetNamespace(), Name: object.GetName()}
			return r.Known.History.Get(key).Intent == nil // only an open write asks
		}
	}
	return host, tenant
}

// surveySides lists both sides' metadata into a survey. The tenant's list begins once the host's shows a settled state:
// a mirror that was listed before its source can only look orphaned if the source is really gone. Where the host's had
// to begin anew, the tenant's does too. The side is the one that an error is about.
func surveySides(ctx context.Context, k *plan.KindSnapshot, survey *plan.Survey, host, tenant collection) (record.Side, error) {
	settled, begun := make(chan struct{}), 0
	settle := sync.OnceFunc(func() { close(settled) })
	mirrors := metadataList{
		collection: host,
		begin: func() {
			begun++
			survey.Restart(record.Host)
		},
		fixed: func(string) { settle() },
		see:   func(object *metav1.PartialObjectMetadata) bool { return survey.See(record.Host, object) },
	}
	objects := metadataList{
		collection: tenant,
		begin:      func() { survey.Restart(record.Tenant) },
		fixed:      func(version string) { k.TenantVersion = version },
		see:        func(object *metav1.PartialObjectMetadata) bool { return survey.See(record.Tenant, object) },
	}
	objects.fields = kinds.CrossingFields(tenant.groupVersionKind().GroupKind())
	var hostErr, tenantErr error
	both, stop := context.WithCancel(ctx)
	defer stop()
	var group sync.WaitGroup
	group.Go(func() {
		if hostErr = mirrors.all(both); hostErr != nil {
			stop()
		}
	})
	group.Go(func() {
		select {
		case <-settled:
			tenantErr = objects.all(both)
		case <-both.Done():
		}
	})
	group.Wait()
	if hostErr == nil && tenantErr == nil && begun > 1 {
		tenantErr = objects.all(ctx)
	}
	if hostErr != nil {
		return record.Host, hostErr
	}
	return record.Tenant, tenantErr
}

// fetchBoth adds the content of the named objects to a kind's snapshot. One that is gone since it was listed is left out.
// The lists have told which sides there are, so neither side need wait for the other.
func fetchBoth(ctx context.Context, k *plan.KindSnapshot, host, tenant collection, mirrors, objects []types.NamespacedName) error {
	quiet := len(k.Quiet)
	var mirrored, crossing list
	var hostErr, tenantErr error
	var group sync.WaitGroup
	group.Go(func() { mirrored, hostErr = fetch(ctx, host, mirrors, quiet+len(k.Others)) })
	group.Go(func() { crossing, tenantErr = fetch(ctx, tenant, objects, quiet+len(k.Apart)) })
	group.Wait()
	if hostErr == nil {
		for name, cause := range mirrored.malformed {
			hostErr = fmt.Errorf("%w: object %s: %s", errNotAList, name, cause)
		}
	}
	if hostErr != nil {
		return failed(k, record.Host, hostErr)
	}
	if tenantErr != nil {
		return failed(k, record.Tenant, tenantErr)
	}
	k.Host = append(k.Host, mirrored.objects...)
	k.Tenant = append(k.Tenant, crossing.objects...)
	if k.Malformed == nil && len(crossing.malformed) > 0 {
		k.Malformed = map[types.NamespacedName]string{}
	}
	maps.Copy(k.Malformed, crossing.malformed)
	return nil
}

// fetch reads named objects of a collection, one by one or as a list, whichever costs less; others is how many there are
// besides.
func fetch(ctx context.Context, c collection, names []types.NamespacedName, others int) (list, error) {
	if len(names) > getsAnyway && len(names)*getOutweighs >= others+len(names) {
		c.only = map[types.NamespacedName]bool{}
		for _, name := range names {
			c.only[name] = true
		}
		return c.all(ctx)
	}
	found := newList()
	var lock sync.Mutex
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(getsAtOnce)
	for _, name := range names {
		group.Go(func() error {
			raw, err := c.get(groupCtx, name)
			if raw == nil || err != nil {
				return err
			}
			lock.Lock()
			defer lock.Unlock()
			if err := c.spend(len(raw)); err != nil {
				return err
			}
			return found.add(raw, c)
		})
	}
	return *found, group.Wait()
}

// get reads one object, nil where there is none.
func (c collection) get(ctx context.Context, name types.NamespacedName) ([]byte, error) {
	c.namespace = name.Namespace
	answer := c.client.Get().AbsPath(c.path(), name.Name).SetHeader("Accept", "application/json").Do(ctx)
	err := answer.Error()
	if apierrors.IsNotFound(err) && !apierrors.HasStatusCause(err, metav1.CauseTypeUnexpectedServerResponse) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return answer.Raw()
}

// readDisturbed reads of quiet pairs what a plan needs all the same.
func readDisturbed(ctx context.Context, r Request, taken plan.Snapshot, resources Resources) error {
	if r.Known == nil {
		return nil
	}
	known := *r.Known
	known.Snapshot = taken
	for _, disturbed := range plan.Disturb(known) {
		k := &taken.Kinds[disturbed.Kind]
		for _, name := range disturbed.Tenant {
			delete(k.Quiet, name)
		}
		host, tenant := collections(r, k, resources)
		if err := fetchBoth(ctx, k, host, tenant, disturbed.Host, disturbed.Tenant); err != nil {
			return err
		}
	}
	return nil
}
