package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/pass/access"
)

// acceptMetadata asks for metadata alone, in protobuf.
const acceptMetadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"

// metadataLimit is how many objects of a list one answer has, as in a pass.
const metadataLimit = 20_000

var metadataDecoder = func() runtime.Decoder {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme).UniversalDeserializer()
}()

// floor sends the bare API calls that a pass cannot do without. Its clients are connected already, and it decodes
// nothing but lists of metadata: both make the floor lower than any pass can get.
type floor struct {
	host, tenant *access.Cluster
	kind         objectKind
	// scratch is a namespace of the host for its own Lease, and for what it writes.
	scratch string

	mu sync.Mutex
	// versions are the resourceVersions of its own SyncDecisions by name.
	versions map[string]string
}

// newFloor makes its namespace.
func (w *world) newFloor(ctx context.Context, kind objectKind, scratch string) (*floor, error) {
	f := &floor{host: w.host.client, tenant: w.tenant.client, kind: kind, scratch: scratch, versions: map[string]string{}}
	if err := makeNamespace(ctx, w.host.admin, scratch); err != nil {
		return nil, err
	}
	_, err := f.host.Coordination().Leases(scratch).Create(ctx, &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: "floor"}, Spec: coordinationv1.LeaseSpec{LeaseDurationSeconds: ptr.To(int32(30))},
	}, metav1.CreateOptions{})
	return f, err
}

func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	return err
}

// quiet is a pass that finds nothing new: the Lease is taken (GET, PUT), both sides' metadata listed, the Lease given
// back (PUT). What a pass reads of its configuration and its history is not in it.
func (f *floor) quiet(ctx context.Context, mirrors string) (time.Duration, error) {
	return since(func() error {
		return f.underLease(ctx, f.scratch, "floor", func() error { return f.lists(ctx, f.tenant, mirrors) })
	})
}

// underLease takes a Lease, calls a function, and gives the Lease back.
func (f *floor) underLease(ctx context.Context, namespace, name string, do func() error) error {
	leases := f.host.Coordination().Leases(namespace)
	lease, err := leases.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	lease.Spec.HolderIdentity, lease.Spec.RenewTime = ptr.To("floor"), ptr.To(metav1.NowMicro())
	if lease, err = leases.Update(ctx, lease, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	lease.Spec.HolderIdentity = ptr.To("")
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err
}

// lists lists the metadata of a kind on both sides. The tenant's begins with the host's first answer, which settles the
// state that the host's shows: a mirror that was listed before its source can only look orphaned if the source is gone.
func (f *floor) lists(ctx context.Context, tenant *access.Cluster, mirrors string) error {
	settled := make(chan struct{})
	settle := sync.OnceFunc(func() { close(settled) })
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error {
		defer settle() // also where it failed
		return f.metadata(groupCtx, f.host, "/api/v1/namespaces/"+mirrors+"/"+f.kind.resource, settle)
	})
	group.Go(func() error {
		<-settled
		return f.metadata(groupCtx, tenant, "/api/v1/"+f.kind.resource, func() {})
	})
	return group.Wait()
}

// metadata reads a whole list, and calls first when the first answer is there.
func (f *floor) metadata(ctx context.Context, side *access.Cluster, path string, first func()) error {
	client, token := side.Discovery().RESTClient(), ""
	for {
		answer := client.Get().AbsPath(path).SetHeader("Accept", acceptMetadata).
			Param("limit", strconv.Itoa(metadataLimit)).Param("continue", token).Do(ctx)
		body, err := answer.Raw()
		if err != nil {
			return err
		}
		object, _, err := metadataDecoder.Decode(body, nil, nil)
		if err != nil {
			return err
		}
		page, ok := object.(*metav1.PartialObjectMetadataList)
		if !ok {
			return fmt.Errorf("the answer to %s is a %T", path, object)
		}
		first()
		if token = page.Continue; token == "" {
			return nil
		}
	}
}
