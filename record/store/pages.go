package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/record"
)

// labelHistoryOf marks a further page; its value is the tenant's name (see labelValue).
const labelHistoryOf = "tenantplane.io/history-of"

const (
	// pagesAtOnce is how many pages are written at the same time.
	pagesAtOnce = 8
	// listLimit is how many pages one answer may hold: 4 MiB of full ones.
	listLimit = 16
	// maxLists bounds the answers of one listing: two sets of the most pages there can be, and the old one of a third.
	maxLists = 3 * record.MaxPages / listLimit
	// listRestarts is how often a listing begins anew after its continue token has expired.
	listRestarts = 3
)

// storedPage is a further page as it is stored.
type storedPage struct {
	uid             types.UID
	resourceVersion string
	// page is nil where nothing, or nothing readable, is in it.
	page *record.Page
}

func (p storedPage) is(want record.Page) bool {
	return p.page != nil && samePage(*p.page, want)
}

func samePage(a, b record.Page) bool {
	return a.Of == b.Of && a.Index == b.Index && a.Format == b.Format && a.KeyID == b.KeyID && bytes.Equal(a.Data, b.Data)
}

// pageName is the name of a further page's object: `<tenant>-history-<of>-<index>-<hash>`. The hash (80 bits, over the
// length-prefixed whole) keeps it apart from the name of any TenantCluster, whose SyncDecision lies in the same
// namespace, and from pages of tenants whose names are cut to the same.
func (s *Store) pageName(of, index int) string {
	rest := fmt.Sprintf("-history-%d-%d-", of, index)
	prefix := s.tenant[:min(len(s.tenant), 253-len(rest)-16)]
	return strings.TrimRight(prefix, ".-") + rest + hash16(s.tenant, rest)
}

// isPageName says whether name is that of a page of this tenant, of a set of whatever size.
func (s *Store) isPageName(name string) bool {
	parts := strings.Split(name, "-")
	if len(parts) < 3 {
		return false
	}
	of, err1 := strconv.Atoi(parts[len(parts)-3])
	index, err2 := strconv.Atoi(parts[len(parts)-2])
	return err1 == nil && err2 == nil && name == s.pageName(of, index)
}

// labelValue is the tenant's name, or where that is too long for a label value its beginning and a hash.
func (s *Store) labelValue() string {
	if len(s.tenant) <= 63 {
		return s.tenant
	}
	return s.tenant[:46] + "-" + hash16(s.tenant)
}

// hash16 is 16 characters of lower-case base32: 80 bits of SHA-256 over the length-prefixed parts.
func hash16(parts ...string) string {
	d := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(d, "%d:%s", len(p), p)
	}
	return strings.ToLower(base32.StdEncoding.EncodeToString(d.Sum(nil)[:10]))
}

// listPages lists the further pages of this tenant, of whatever set. An object that has the label but not the name of
// a page of this tenant is left alone.
func (s *Store) listPages(ctx context.Context) (map[string]storedPage, error) {
	for range listRestarts {
		pages, err := s.listPagesOnce(ctx)
		if !apierrors.IsResourceExpired(err) {
			return pages, err
		}
	}
	return nil, fmt.Errorf("listing pages of history (%s=%s): the list expired %d times before its end", labelHistoryOf, s.labelValue(), listRestarts)
}

func (s *Store) listPagesOnce(ctx context.Context) (map[string]storedPage, error) {
	pages := map[string]storedPage{}
	opts := metav1.ListOptions{LabelSelector: labelHistoryOf + "=" + s.labelValue(), Limit: listLimit}
	for range maxLists {
		list, err := s.client.List(ctx, opts)
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("the host does not serve %s; apply manifests/crd to it: %w", Resource.GroupResource(), err)
		}
		if err != nil {
			return nil, fmt.Errorf("listing pages of history (%s): %w", opts.LabelSelector, err)
		}
		for i := range list.Items {
			d, err := s.decisionOf(&list.Items[i])
			if err != nil && !errors.Is(err, errMalformed) {
				return nil, err
			}
			if s.isPageName(d.Name) {
				pages[d.Name] = storedPage{uid: d.UID, resourceVersion: d.ResourceVersion, page: d.Status.History}
			}
		}
		if opts.Continue = list.GetContinue(); opts.Continue == "" {
			return pages, nil
		}
	}
	return nil, fmt.Errorf("listing pages of history (%s): more than %d; delete those that no head refers to", opts.LabelSelector, maxLists*listLimit)
}

// writePages writes the further pages that are not stored as they are to be. The pass must hold the epoch.
func (s *Store) writePages(ctx context.Context, l *Loaded, pages []record.Page) error {
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(pagesAtOnce)
	written := make([]storedPage, len(pages))
	for i := 1; i < len(pages); i++ {
		name := s.pageName(len(pages), i)
		have, ok := l.pages[name]
		if ok && have.is(pages[i]) {
			written[i] = have
			continue
		}
		group.Go(func() (err error) {
			written[i], err = s.writePage(groupCtx, l.Epoch(), name, have, pages[i])
			return err
		})
	}
	err := group.Wait()
	if l.pages == nil {
		l.pages = map[string]storedPage{}
	}
	for i, p := range written {
		if p.uid != "" {
			l.pages[s.pageName(len(pages), i)] = p
		}
	}
	return err
}

// writePage brings one page to want. Where it is not as it was read (a pass that died, or one that was superseded in
// the middle of its writing, left it so), what is there is read first, then the epoch, and then it is overwritten at
// the resourceVersion read: if a newer pass comes in between, one of the two is noticed.
func (s *Store) writePage(ctx context.Context, epoch Epoch, name string, have storedPage, want record.Page) (storedPage, error) {
	var err error
	for range attempts {
		if have.uid == "" {
			have, err = s.create(ctx, name, map[string]string{labelHistoryOf: s.labelValue()})
		}
		if err == nil {
			var rv string
			rv, err = s.updateStatus(ctx, name, have.uid, have.resourceVersion, record.SyncDecisionStatus{History: &want})
			if err == nil {
				return storedPage{uid: have.uid, resourceVersion: rv, page: &want}, nil
			}
		}
		if tooLarge(err) {
			return storedPage{}, fmt.Errorf("writing %s: %w: %w", s.object(name), ErrTooLarge, err)
		}
		if refused(err) && !apierrors.IsNotFound(err) {
			return storedPage{}, fmt.Errorf("writing %s: %w", s.object(name), err)
		}
		if have, err = s.lookAgain(ctx, epoch, name, err); err != nil {
			return storedPage{}, err
		}
		if have.is(want) {
			return have, nil
		}
	}
	return storedPage{}, fmt.Errorf("writing %s: it was changed by something else %d times in a row", s.object(name), attempts)
}

// lookAgain reads a page whose write failed with cause, and checks that the pass still holds the epoch.
func (s *Store) lookAgain(ctx context.Context, epoch Epoch, name string, cause error) (storedPage, error) {
	var have storedPage
	d, err := s.get(ctx, name)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil && !errors.Is(err, errMalformed):
		return have, errors.Join(fmt.Errorf("writing %s: %w", s.object(name), cause), err)
	case d.Labels[labelHistoryOf] != s.labelValue():
		return have, fmt.Errorf("%s stands where a page of the history of tenant %q belongs, and is none (no label %s=%s); delete or rename it",
			s.object(name), s.tenant, labelHistoryOf, s.labelValue())
	default:
		have = storedPage{uid: d.UID, resourceVersion: d.ResourceVersion, page: d.Status.History}
	}
	now, err := s.CurrentEpoch(ctx)
	if err != nil {
		return have, errors.Join(fmt.Errorf("writing %s: %w", s.object(name), cause), err)
	}
	if now != epoch {
		return have, fmt.Errorf("writing %s: %w", s.object(name), supersededBy(now))
	}
	return have, nil
}

// removeStrays deletes the pages that are not of the set of so many. It is not important enough to fail for: what stays
// is found again when the next pass lists pages, and belongs to the TenantCluster in any case.
func (s *Store) removeStrays(ctx context.Context, l *Loaded, of int) {
	current := map[string]bool{}
	for i := 1; i < of; i++ {
		current[s.pageName(of, i)] = true
	}
	for name, p := range l.pages {
		if current[name] {
			continue
		}
		err := s.client.Delete(ctx, name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &p.uid, ResourceVersion: &p.resourceVersion},
		})
		if err == nil || apierrors.IsNotFound(err) {
			delete(l.pages, name)
		}
	}
}
