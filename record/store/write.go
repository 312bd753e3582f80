package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/record"
)

// attempts bounds the tries of one write. A further one follows only on an answer that leaves open whether the write
// happened, or on a conflict that turns out to concern metadata alone.
const attempts = 3

// Reservation is what a pass stores before its first write.
type Reservation struct {
	PassID string
	// Tenant is the identity of the tenant behind the pass; nil keeps the recorded one.
	Tenant *record.TenantIdentity
	// Entries is the whole trail, the writes to come among them (see record.Ahead); nil keeps the stored one.
	Entries []record.Entry
	// History holds the intents of the writes to come.
	History *record.History
}

// Result is what a pass leaves behind.
type Result struct {
	// LastPass is the summary; its ID signs the epoch where the pass did not reserve.
	LastPass record.LastPass
	// Conflicts is how many pairs wait for a person.
	Conflicts int32
	// Entries is the whole trail (see record.Append).
	Entries []record.Entry
	// Tenant is the identity of the tenant behind the pass; nil keeps the recorded one.
	Tenant  *record.TenantIdentity
	History *record.History
}

// Reserve raises the epoch and stores the intents and the trail. After it, and not before, the pass may write objects,
// as long as CurrentEpoch is l.Epoch(). It makes the SyncDecision where there is none.
//
// The head is swapped first, so that a pass that loses the swap has touched no page; whether intents are stored in the
// same moment does not matter, since no object is written before Reserve returns. Only where the number of pages
// changes does what the head tells wait for its pages, in a second swap; the first is of the epoch alone.
//
// ErrSuperseded means that nothing may be written.
func (s *Store) Reserve(ctx context.Context, l *Loaded, r Reservation) error {
	pages, err := r.History.Encode()
	if err != nil {
		return err
	}
	next, sameSet := l.Status, l.of() == len(pages)
	if sameSet {
		next = r.status(l.Status, pages[0])
	}
	if err := s.raise(ctx, l, next, r.PassID); err != nil {
		return err
	}
	if err := s.writePages(ctx, l, pages); err != nil {
		return err
	}
	if !sameSet {
		if err := s.swapOrShorten(ctx, l, r.status(l.Status, pages[0])); err != nil {
			return err
		}
		s.removeStrays(ctx, l, len(pages))
	}
	return nil
}

// status is what the head holds once everything is reserved, with that page 0.
func (r Reservation) status(head record.SyncDecisionStatus, page record.Page) record.SyncDecisionStatus {
	if r.Entries != nil {
		head.Entries = r.Entries
	}
	if r.Tenant != nil {
		head.Tenant = r.Tenant
	}
	head.History, head.Pairs = &page, int32(r.History.Pairs())
	return head
}

// Record stores what the pass did and found, and says whether it wrote anything. It writes nothing if the pass did not
// reserve and found nothing new: the same trail, history and numbers, and the outcome recorded last.
//
// Further pages come first, then the head. ErrSuperseded means that the record is another pass's now, and this one's
// view of it is void. With ErrTooLarge nothing of the head was written.
func (s *Store) Record(ctx context.Context, l *Loaded, r Result) (written bool, err error) {
	pages, err := r.History.Encode()
	if err != nil {
		return false, err
	}
	next := l.Status
	next.LastPass = storable(r.LastPass)
	next.Conflicts = r.Conflicts
	next.Pairs = int32(r.History.Pairs())
	next.Entries = r.Entries
	if r.Tenant != nil {
		next.Tenant = r.Tenant
	}
	further := s.furtherChanged(l, pages)
	if !l.held && !further && !news(l.Status, next, pages[0]) {
		return false, nil
	}
	if further {
		if !l.held {
			if err := s.raise(ctx, l, l.Status, r.LastPass.ID); err != nil {
				return false, err
			}
		}
		if err := s.writePages(ctx, l, pages); err != nil {
			return false, err
		}
	}
	next.Epoch, next.ReservedBy, next.History = l.Status.Epoch, l.Status.ReservedBy, &pages[0]
	if l.held {
		err = s.swapOrShorten(ctx, l, next)
	} else {
		err = s.raise(ctx, l, next, r.LastPass.ID)
	}
	if err != nil {
		return false, err
	}
	s.removeStrays(ctx, l, len(pages))
	return true, nil
}

// news says whether next, with that page 0, is worth writing.
func news(old, next record.SyncDecisionStatus, page record.Page) bool {
	return old.LastPass == nil || old.LastPass.Outcome != next.LastPass.Outcome ||
		old.History == nil || !samePage(*old.History, page) ||
		old.Conflicts != next.Conflicts || old.Pairs != next.Pairs ||
		!equality.Semantic.DeepEqual(old.Tenant, next.Tenant) ||
		!equality.Semantic.DeepEqual(old.Entries, next.Entries)
}

func (s *Store) furtherChanged(l *Loaded, pages []record.Page) bool {
	if l.of() != len(pages) {
		return true
	}
	for i, p := range pages[1:] {
		if have, ok := l.pages[s.pageName(len(pages), i+1)]; !ok || !have.is(p) {
			return true
		}
	}
	return false
}

// raise swaps the head for next with the epoch raised and signed, making the head where there is none.
func (s *Store) raise(ctx context.Context, l *Loaded, next record.SyncDecisionStatus, passID string) error {
	if l.uid == "" {
		if err := s.createHead(ctx, l); err != nil {
			return err
		}
	}
	next.Epoch, next.ReservedBy = l.Status.Epoch+1, passID
	if err := s.swapOrShorten(ctx, l, next); err != nil {
		return err
	}
	l.held = true
	return nil
}

// createHead makes the head, still without a status. Of two passes that come to it at once, the swap that follows
// decides.
func (s *Store) createHead(ctx context.Context, l *Loaded) error {
	var err error
	for range attempts {
		var made storedPage
		made, err = s.create(ctx, s.tenant, nil)
		if err == nil {
			l.uid, l.resourceVersion = made.uid, made.resourceVersion
			return nil
		}
		if refused(err) {
			break
		}
		head, getErr := s.get(ctx, s.tenant)
		switch {
		case apierrors.IsNotFound(getErr):
			// The request got lost: once more.
		case getErr != nil:
			return errors.Join(fmt.Errorf("creating %s: %w", s.object(s.tenant), err), getErr)
		case head.Labels[labelHistoryOf] != "" || !equality.Semantic.DeepEqual(head.Status, record.SyncDecisionStatus{}):
			return fmt.Errorf("creating %s: %w", s.object(s.tenant), supersededBy(epochOf(head)))
		default:
			l.uid, l.resourceVersion = head.UID, head.ResourceVersion
			return nil
		}
	}
	return fmt.Errorf("creating %s: %w", s.object(s.tenant), err)
}

// swapOrShorten swaps the head for next. If that is too large for the API server, it tries once more with the newest
// quarter of the trail, and says so in the summary of the pass that it records.
func (s *Store) swapOrShorten(ctx context.Context, l *Loaded, next record.SyncDecisionStatus) error {
	err := s.swap(ctx, l, next)
	if !errors.Is(err, ErrTooLarge) || len(next.Entries) == 0 {
		return err
	}
	kept := next.Entries[len(next.Entries)-len(next.Entries)/4:]
	if next.LastPass != nil && next.LastPass != l.Status.LastPass {
		summary := *next.LastPass
		note := fmt.Sprintf("the trail was shortened from %d to %d entries, since the SyncDecision was too large", len(next.Entries), len(kept))
		if summary.Message != "" {
			note = "; " + note
		}
		summary.Message = record.Plain(summary.Message, record.MaxMessage-len(note)) + note
		next.LastPass = &summary
	}
	next.Entries = kept
	return s.swap(ctx, l, next)
}

// swap replaces the head's status by next if it is still as it was read, and moves l on.
//
// An answer that leaves open whether the write happened, and a conflict, are settled by reading the head:
//
//	there is                          | then
//	next                              | it happened
//	the status read, another version  | somebody changed metadata, or nothing happened: once more
//	anything else                     | superseded
func (s *Store) swap(ctx context.Context, l *Loaded, next record.SyncDecisionStatus) error {
	var err error
	for range attempts {
		var rv string
		rv, err = s.patchStatus(ctx, l, next)
		switch {
		case err == nil:
			l.Status, l.resourceVersion, l.unread = next, rv, false
			return nil
		case tooLarge(err):
			return fmt.Errorf("writing %s: %w: %w", s.object(s.tenant), ErrTooLarge, err)
		case apierrors.IsNotFound(err):
			return fmt.Errorf("writing %s: it was deleted meanwhile: %w", s.object(s.tenant), ErrSuperseded)
		case refused(err):
			return fmt.Errorf("writing %s: %w", s.object(s.tenant), err)
		}
		head, getErr := s.get(ctx, s.tenant)
		switch {
		case apierrors.IsNotFound(getErr):
			return fmt.Errorf("writing %s: it was deleted meanwhile: %w", s.object(s.tenant), ErrSuperseded)
		case getErr != nil:
			return fmt.Errorf("writing %s, and it is unknown whether it happened: %w", s.object(s.tenant), errors.Join(err, getErr))
		case head.UID == l.uid && equality.Semantic.DeepEqual(head.Status, next):
			l.Status, l.resourceVersion, l.unread = next, head.ResourceVersion, false
			return nil
		case head.UID == l.uid && equality.Semantic.DeepEqual(head.Status, l.Status):
			l.resourceVersion = head.ResourceVersion
		default:
			return fmt.Errorf("writing %s: %w", s.object(s.tenant), supersededBy(epochOf(head)))
		}
	}
	return fmt.Errorf("writing %s failed %d times: %w", s.object(s.tenant), attempts, err)
}

func epochOf(head *record.SyncDecision) Epoch {
	return Epoch{UID: head.UID, Number: head.Status.Epoch, PassID: head.Status.ReservedBy}
}

func supersededBy(now Epoch) error {
	return fmt.Errorf("%w: it is at epoch %d now, raised by pass %q", ErrSuperseded, now.Number, now.PassID)
}

// create makes an empty SyncDecision, owned by the TenantCluster. (With a status subresource, the API server ignores a
// status that comes with a create.)
func (s *Store) create(ctx context.Context, name string, labels map[string]string) (storedPage, error) {
	meta := &unstructured.Unstructured{Object: map[string]any{}}
	meta.SetGroupVersionKind(Resource.GroupVersion().WithKind(kind))
	meta.SetNamespace(s.namespace)
	meta.SetName(name)
	meta.SetLabels(labels)
	meta.SetOwnerReferences([]metav1.OwnerReference{s.owner})
	made, err := s.terse.Create(ctx, meta, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return storedPage{}, err
	}
	return storedPage{uid: made.GetUID(), resourceVersion: made.GetResourceVersion()}, nil
}

// patchStatus turns the head's status as it was read into the next, and returns the head's resourceVersion.
func (s *Store) patchStatus(ctx context.Context, l *Loaded, next record.SyncDecisionStatus) (string, error) {
	old := &l.Status
	if l.unread || equality.Semantic.DeepEqual(*old, record.SyncDecisionStatus{}) {
		old = nil
	}
	patch, err := statusPatch(l.uid, l.resourceVersion, old, next)
	if err != nil {
		return "", fmt.Errorf("%s: %w", s.object(s.tenant), err)
	}
	updated, err := s.terse.Patch(ctx, s.tenant, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return "", err
	}
	return updated.GetResourceVersion(), nil
}

// updateStatus writes a status if the object still has this UID and resourceVersion, and returns the new one.
func (s *Store) updateStatus(ctx context.Context, name string, uid types.UID, resourceVersion string, status record.SyncDecisionStatus) (string, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&status)
	if err != nil {
		return "", fmt.Errorf("converting the status of %s: %w", s.object(name), err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"status": fields}}
	u.SetGroupVersionKind(Resource.GroupVersion().WithKind(kind))
	u.SetNamespace(s.namespace)
	u.SetName(name)
	u.SetUID(uid)
	u.SetResourceVersion(resourceVersion)
	updated, err := s.terse.UpdateStatus(ctx, u, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return "", err
	}
	return updated.GetResourceVersion(), nil
}

// storable is the summary in the form in which it is read back: times to the microsecond, and texts within bounds.
func storable(p record.LastPass) *record.LastPass {
	p.StartTime.Time = p.StartTime.UTC().Truncate(time.Microsecond)
	p.EndTime.Time = p.EndTime.UTC().Truncate(time.Microsecond)
	p.Message = record.Plain(p.Message, record.MaxMessage)
	return &p
}
