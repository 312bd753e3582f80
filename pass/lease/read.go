package lease

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Seen is what a tenant's Lease tells somebody who does not want it.
type Seen struct {
	// Began is when the newest pass took it.
	Began time.Time
	// Holder is who holds it now, empty where nobody does.
	Holder string
}

// Read looks at a Lease without taking it. It is nil, without an error, where no pass has ever taken it.
func Read(ctx context.Context, client Client, name string, now time.Time) (*Seen, error) {
	object, err := client.Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading lease %s: %w", name, err)
	case object.Spec.AcquireTime == nil:
		return nil, nil
	}
	seen := &Seen{Began: object.Spec.AcquireTime.Time}
	if held := heldBy(object, now); held != nil {
		seen.Holder = held.Holder
	}
	return seen, nil
}
