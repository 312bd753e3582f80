package pass

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/syncpass/syncpass/pass/access"
	"github.com/syncpass/syncpass/pass/lease"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
	"github.com/syncpass/syncpass/record/store"
)

// Memory is what the host knows about a tenant without asking it.
type Memory struct {
	// Policy is the one that the tenant is synced by; nil where it could not be read.
	Policy *policy.SyncPolicy
	// Status and History are the SyncDecision's; zero and nil where it could not be read.
	Status  record.SyncDecisionStatus
	History *record.History
	// Lease tells when the newest pass began; nil where there was none, or it could not be read.
	Lease *lease.Seen
	// Problems are the parts of a record that cannot be used.
	Problems []error
}

// Recall reads it, without a request to the tenant: TenantCluster, SyncPolicy, SyncDecision and Lease, and the further pages
// of a long history. Its errors say what could not be read; the rest is there.
func Recall(ctx context.Context, o Options) (m Memory, errs []error) {
	loaded, err := loadTarget(ctx, o)
	if err != nil {
		errs = append(errs, err)
	}
	if loaded == nil { // then it is unknown whose record is whose
		return m, errs
	}
	m.Policy = loaded.policy
	recorded, err := store.New(o.Host.Dynamic(), o.Host.Terse(), o.Namespace, o.Tenant, loaded.mapping.Owner).Load(ctx)
	if err != nil {
		errs = append(errs, answered(err))
	} else {
		m.Status, m.History, m.Problems = recorded.Status, recorded.History, recorded.Problems
	}
	m.Lease, err = lease.Read(ctx, o.Host.Coordination().Leases(o.Namespace), lease.Name(o.Tenant), time.Now())
	if err != nil {
		errs = append(errs, answered(err))
	}
	return m, errs
}

// answered tells what the host refused, which somebody has to put right, from no answer.
func answered(err error) error {
	var status apierrors.APIStatus
	if errors.As(err, &status) && !access.Unreachable(err) {
		return &InvalidError{Err: fmt.Errorf("%w: let this user read it, as manifests/base lets a pass", err)}
	}
	return err
}
