package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/policy"
)

const (
	tenantsName = "tenants"
	// tenantObjects is how many objects each tenant has.
	tenantObjects = 50
	// tenantsAtOnce is SYNCPASS_TENANT_CONCURRENCY's default.
	tenantsAtOnce = 4
	// loopTenants are the tenants that the loop is measured on; the others take as long.
	loopTenants = 20
	// aggregatedDiscovery asks for all kinds in one answer.
	aggregatedDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
)

// tenants is a subject of many tenants, each with a namespace of the host of its own. One API server stands for all of
// them: every pass lists 50 objects there, as it would at an API server that belongs to its tenant alone. So that
// neither passes nor the floor share connections between tenants, each kubeconfig is a different one.
type tenants struct{ count, samples int }

func (s tenants) name() string { return fmt.Sprintf("%s/%d", tenantsName, s.count) }

func (s tenants) place(i int) place {
	return place{namespace: fmt.Sprintf("tenant-%d", i), tenant: fmt.Sprintf("t%d", i)}
}

func (s tenants) measure(ctx context.Context, runner string, log io.Writer) (_ []Row, err error) {
	w, err := startWorld(ctx, runner, log)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.lay(ctx, configMaps, tenantObjects); err != nil {
		return nil, err
	}
	var manifests []document
	for i := range s.count {
		manifests = append(manifests, s.place(i).manifests(configMaps)...)
	}
	if err := w.applyToHost(ctx, manifests...); err != nil {
		return nil, err
	}
	pairs := s.count * tenantObjects
	if _, err := s.pass(ctx, w, w.tenant.direct, false, want{passes: s.count, create: pairs}); err != nil {
		return nil, fmt.Errorf("first pass: %w", err)
	}
	c := &collected{row: Row{Name: s.name() + "/quiet", Pairs: pairs, Tenants: s.count, LoopExtrapolated: s.count > loopTenants}}
	for sample := range s.samples + 1 {
		kubeconfig := w.tenant.direct
		if sample == 0 {
			kubeconfig = w.tenant.proxied
		}
		r, err := s.pass(ctx, w, kubeconfig, sample == 0, want{passes: s.count, unchanged: pairs})
		if err != nil {
			return nil, fmt.Errorf("quiet: %w", err)
		}
		c.add(r)
		if sample == 0 {
			continue
		}
		floor, err := s.floor(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("floor: %w", err)
		}
		loop, err := s.loop(ctx, w)
		if err != nil {
			return nil, fmt.Errorf("loop: %w", err)
		}
		c.addFloor(floor, 0)
		c.addLoop(loop)
		fmt.Fprintf(log, "%s/quiet: %.2f s, floor %.2f s, loop %.1f s\n", s.name(), r.Wall.Seconds(), floor.Seconds(), loop.Seconds())
	}
	return []Row{c.done()}, nil
}

// pass runs one process over all tenants, who are reached by a kubeconfig.
func (s tenants) pass(ctx context.Context, w *world, kubeconfig []byte, proxied bool, wanted want) (*run, error) {
	var secrets []document
	for i := range s.count {
		own, err := ownKubeconfig(kubeconfig, i)
		if err != nil {
			return nil, err
		}
		secrets = append(secrets, s.place(i).access(own))
	}
	if err := w.applyToHost(ctx, secrets...); err != nil {
		return nil, err
	}
	return w.pass(ctx, place{}, proxied, wanted, "SYNCPASS_ALL_NAMESPACES=true")
}

// ownKubeconfig is one that leads to the same place with other bytes: client-go shares connections between clients
// whose certificate authorities are written alike.
func ownKubeconfig(kubeconfig []byte, i int) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, c := range config.Clusters {
		c.CertificateAuthorityData = fmt.Appendf(nil, "# tenant %d\n%s", i, c.CertificateAuthorityData)
	}
	return clientcmd.Write(*config)
}

// floor sends what a quiet pass over each tenant must, and decodes nothing but lists of metadata.
func (s tenants) floor(ctx context.Context, w *world) (time.Duration, error) {
	clients := make([]*access.Cluster, s.count)
	f := &floor{host: w.host.client, kind: configMaps}
	for i := range clients {
		own, err := ownKubeconfig(w.tenant.direct, i)
		if err != nil {
			return 0, err
		}
		if clients[i], err = access.NewTenant(own, access.Options{}); err != nil {
			return 0, err
		}
		if err := s.ownLease(ctx, f, s.place(i)); err != nil {
			return 0, err
		}
	}
	return since(func() error {
		host := f.host.Core().RESTClient()
		if err := get(ctx, host, "/apis/"+policy.GroupVersion.String()+"/tenantclusters"); err != nil {
			return err
		}
		if err := discover(ctx, host); err != nil {
			return err
		}
		group, groupCtx := errgroup.WithContext(ctx)
		group.SetLimit(tenantsAtOnce)
		for i, client := range clients {
			group.Go(func() error {
				defer client.Close()
				return s.floorOf(groupCtx, f, client, s.place(i))
			})
		}
		return group.Wait()
	})
}

// ownLease makes a Lease beside the pass' own, whose holder the next pass must not find.
func (s tenants) ownLease(ctx context.Context, f *floor, p place) error {
	leases := f.host.Coordination().Leases(p.namespace)
	if err := leases.Delete(ctx, "floor", metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "floor"}}, metav1.CreateOptions{})
	return err
}

// floorOf is one tenant's share: configuration, Lease, record, discovery, identity, both lists.
func (s tenants) floorOf(ctx context.Context, f *floor, tenant *access.Cluster, p place) error {
	host, group := f.host.Core().RESTClient(), "/apis/"+policy.GroupVersion.String()
	for _, path := range []string{
		group + "/namespaces/" + p.namespace + "/tenantclusters/" + p.tenant,
		group + "/syncpolicies/" + p.tenant,
		"/api/v1/namespaces/" + p.namespace + "/secrets/" + p.secret(),
	} {
		if err := get(ctx, host, path); err != nil {
			return err
		}
	}
	return f.underLease(ctx, p.namespace, "floor", func() error {
		together, togetherCtx := errgroup.WithContext(ctx)
		together.Go(func() error {
			return get(togetherCtx, host, group+"/namespaces/"+p.namespace+"/syncdecisions/"+p.tenant)
		})
		together.Go(func() error { return discover(togetherCtx, tenant.Core().RESTClient()) })
		together.Go(func() error { return get(togetherCtx, tenant.Core().RESTClient(), "/api/v1/namespaces/kube-system") })
		if err := together.Wait(); err != nil {
			return err
		}
		return f.lists(ctx, tenant, p.namespace)
	})
}

func discover(ctx context.Context, client rest.Interface) error {
	for _, path := range []string{"/api", "/apis"} {
		if err := client.Get().AbsPath(path).SetHeader("Accept", aggregatedDiscovery).Do(ctx).Error(); err != nil {
			return err
		}
	}
	return nil
}

func get(ctx context.Context, client rest.Interface, path string) error {
	return client.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Error()
}

// loop goes over some of the tenants, and says how long all would take.
func (s tenants) loop(ctx context.Context, w *world) (time.Duration, error) {
	part := min(s.count, loopTenants)
	took, err := since(func() error {
		for i := range part {
			p := s.place(i)
			l := newLoop(w.host.client, w.tenant.client, configMaps, p.namespace, p.mirror)
			if _, err := l.sync(ctx, tenantObjects, tenantObjects); err != nil {
				return err
			}
		}
		return nil
	})
	return took * time.Duration(s.count) / time.Duration(part), err
}
