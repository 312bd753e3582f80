package store

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/ptr"

	"github.com/syncpass/syncpass/record"
)

// Resource is SyncDecision's, as a dynamic client wants it.
var Resource = schema.GroupVersionResource{Group: "tenantplane.io", Version: "v1alpha1", Resource: "syncdecisions"}

const (
	kind = "SyncDecision"
	// fieldManager signs all writes in managedFields.
	fieldManager = "syncpass"
)

// Store is the SyncDecision of one tenant.
type Store struct {
	// client reads and deletes; terse writes, and reads of the answers metadata alone.
	client, terse     dynamic.ResourceInterface
	namespace, tenant string
	owner             metav1.OwnerReference
}

// New is the store of one tenant. Terse may be a client that asks for metadata alone in the answers to writes: these are
// as large as what was written, and nobody reads them. Owner is its TenantCluster, which controls what the store creates;
// deleting it cleans up.
func New(client, terse dynamic.Interface, namespace, tenant string, owner metav1.OwnerReference) *Store {
	owner.Controller = ptr.To(true)
	owner.BlockOwnerDeletion = ptr.To(false)
	return &Store{
		client:    client.Resource(Resource).Namespace(namespace),
		terse:     terse.Resource(Resource).Namespace(namespace),
		namespace: namespace,
		tenant:    tenant,
		owner:     owner,
	}
}

// Loaded is a SyncDecision as it was last read or written, with what it takes to swap it for the next. Reserve and
// Record move it on.
type Loaded struct {
	// Status is the head's. Change copies only.
	Status record.SyncDecisionStatus
	// History is what could be read of it; never nil.
	History *record.History
	// Problems are what could not be read, each naming object, cause and consequence. The pairs concerned have no
	// baseline.
	Problems []error

	// uid and resourceVersion are the head's, empty where there is none.
	uid             types.UID
	resourceVersion string
	// unread: the stored head is not what Status says, since it is malformed.
	unread bool
	// held: this pass raised the epoch.
	held bool
	// pages are the further pages there are, of whatever set, by name.
	pages map[string]storedPage
}

// Epoch is a moment in the life of a SyncDecision: it is another one as soon as another pass has written. Compare with ==.
type Epoch struct {
	// UID is the SyncDecision's: one that was deleted and made again starts over.
	UID types.UID
	// Number is raised by one by every pass that writes.
	Number int64
	// PassID is the pass that raised it.
	PassID string
}

// Epoch is the epoch as loaded, and after Reserve that of the pass itself.
func (l *Loaded) Epoch() Epoch {
	return Epoch{UID: l.uid, Number: l.Status.Epoch, PassID: l.Status.ReservedBy}
}

// CurrentEpoch reads the epoch there is now; the zero Epoch if there is no SyncDecision. A pass whose own Epoch is
// another one has been superseded and must not write. It costs one GET, of the whole head.
func (s *Store) CurrentEpoch(ctx context.Context) (Epoch, error) {
	head, err := s.get(ctx, s.tenant)
	if apierrors.IsNotFound(err) {
		return Epoch{}, nil
	}
	if err != nil && !errors.Is(err, errMalformed) {
		return Epoch{}, err
	}
	return Epoch{UID: head.UID, Number: head.Status.Epoch, PassID: head.Status.ReservedBy}, nil
}

// Load reads the SyncDecision: one GET, and a LIST only if the history has further pages or there is no SyncDecision
// yet. None is no error but an empty record.
//
// An error that is record.ErrNewerFormat means that a newer syncpass is in use here: this one must not write.
func (s *Store) Load(ctx context.Context) (*Loaded, error) {
	l := &Loaded{History: record.NewHistory("")}
	head, err := s.get(ctx, s.tenant)
	switch {
	case apierrors.IsNotFound(err):
		// Pages left by a head that was deleted are noticed here, to be removed when a new head stands.
		l.pages, err = s.listPages(ctx)
		return l, err
	case errors.Is(err, errMalformed):
		l.unread = true
		l.Problems = append(l.Problems, fmt.Errorf("%w; what it recorded is taken as lost, and will be replaced", err))
	case err != nil:
		return nil, err
	}
	if of, ok := head.Labels[labelHistoryOf]; ok {
		return nil, fmt.Errorf("%s is a page of the history of tenant %q; give the TenantCluster %q another name", s.object(s.tenant), of, s.tenant)
	}
	l.uid, l.resourceVersion, l.Status = head.UID, head.ResourceVersion, head.Status
	if c := metav1.GetControllerOf(head); c != nil && c.UID != s.owner.UID {
		l.Problems = append(l.Problems, fmt.Errorf(
			"%s belongs to %s %q with UID %s, not to the present TenantCluster (%s): garbage collection may remove it with all history; set its ownerReference, or delete it to begin anew",
			s.object(s.tenant), c.Kind, c.Name, c.UID, s.owner.UID))
	}
	if l.of() > 1 {
		if l.pages, err = s.listPages(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.decode(l); err != nil {
		return nil, err
	}
	return l, nil
}

// of is the number of pages of the stored history.
func (l *Loaded) of() int {
	if l.Status.History == nil {
		return 1
	}
	return int(l.Status.History.Of)
}

// decode puts the set of pages together that the head refers to.
func (s *Store) decode(l *Loaded) error {
	if l.Status.History == nil {
		if l.Status.Pairs > 0 {
			l.Problems = append(l.Problems, fmt.Errorf("%s: its history of %d pairs is gone; they have no baseline", s.object(s.tenant), l.Status.Pairs))
		}
		return nil
	}
	pages := []record.Page{*l.Status.History}
	for i := 1; i < min(l.of(), record.MaxPages); i++ {
		if p, ok := l.pages[s.pageName(l.of(), i)]; ok && p.page != nil {
			pages = append(pages, *p.page)
		}
	}
	history, err := record.Decode(pages)
	if errors.Is(err, record.ErrNewerFormat) {
		return fmt.Errorf("%s: %w", s.object(s.tenant), err)
	}
	l.History = history
	for _, err := range each(err) {
		name := s.tenant
		if p := (*record.PageError)(nil); errors.As(err, &p) && p.Index > 0 {
			name = s.pageName(l.of(), int(p.Index))
		}
		l.Problems = append(l.Problems, fmt.Errorf("%s: %w; its pairs have no baseline", s.object(name), err))
	}
	return nil
}

// each takes a joined error apart.
func each(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	if err == nil {
		return nil
	}
	return []error{err}
}

// errMalformed: the object is there, and is not what the CRD says. With it get returns what could be read.
var errMalformed = errors.New("it is malformed")

// get reads a SyncDecision.
func (s *Store) get(ctx context.Context, name string) (*record.SyncDecision, error) {
	u, err := s.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", s.object(name), err)
	}
	return s.decisionOf(u)
}

// decisionOf converts an object. Of a malformed one it keeps metadata and epoch: a new record must not reuse an epoch.
func (s *Store) decisionOf(u *unstructured.Unstructured) (*record.SyncDecision, error) {
	d := &record.SyncDecision{}
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, d)
	if err == nil {
		return d, nil
	}
	d = &record.SyncDecision{ObjectMeta: metav1.ObjectMeta{
		Name:            u.GetName(),
		UID:             u.GetUID(),
		ResourceVersion: u.GetResourceVersion(),
		Labels:          u.GetLabels(),
	}}
	d.Status.Epoch, _, _ = unstructured.NestedInt64(u.Object, "status", "epoch")
	return d, fmt.Errorf("%s: %w: %w", s.object(u.GetName()), errMalformed, err)
}

// object names a SyncDecision in messages.
func (s *Store) object(name string) string { return fmt.Sprintf("%s %s/%s", kind, s.namespace, name) }
