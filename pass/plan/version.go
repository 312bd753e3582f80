package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

// untouched says by metadata alone whether one side is certainly the object of the last agreement, as it was. On the host,
// where a restored backup takes the history back as well, an equal resourceVersion says so. A tenant that was restored goes
// through the same resourceVersions once more; there the times of the object's writes have to be the same, too.
func untouched(side record.Side, object metav1.Object, known *record.Baseline) bool {
	version := known.Of(side)
	return object.GetUID() == version.UID && object.GetResourceVersion() == version.ResourceVersion &&
		(side == record.Host || known.Writes != record.Fingerprint{} && writes(object) == known.Writes)
}

// moved says whether one side changed since the last agreement: another object under the name, or other content.
func (c *computation) moved(p *pair, side record.Side, object *unstructured.Unstructured, known *record.Baseline) bool {
	version := known.Of(side)
	switch {
	case object.GetUID() != version.UID:
		return true
	case version.Hash.IsZero(): // made with a key that is no more; then resourceVersions alone tell
		return object.GetResourceVersion() != version.ResourceVersion
	case untouched(side, object, known):
		return false
	}
	return c.hash(p, side, object) != version.Hash
}

// writes are who wrote an object, and when: zero where managedFields do not say. The API server renews the time of an
// entry with every change of what the entry is about
// (https://kubernetes.io/docs/reference/generated/kubernetes-api/v1.37/#managedfieldsentry-v1-meta).
func writes(object metav1.Object) record.Fingerprint {
	told := make([]byte, 0, 512)
	timed := false
	note := func(manager, operation, subresource, at string) {
		timed = timed || at != ""
		for _, part := range [...]string{manager, operation, subresource, at} {
			told = append(binary.AppendUvarint(told, uint64(len(part))), part...)
		}
	}
	if whole, ok := object.(*unstructured.Unstructured); ok {
		// GetManagedFields would convert the sets of fields, too, which are most of an object's metadata.
		entries, _, _ := unstructured.NestedFieldNoCopy(whole.Object, "metadata", "managedFields")
		list, _ := entries.([]any)
		for _, entry := range list {
			fields, _ := entry.(map[string]any)
			text := func(name string) string { value, _ := fields[name].(string); return value }
			note(text("manager"), text("operation"), text("subresource"), text("time"))
		}
	} else {
		for _, entry := range object.GetManagedFields() {
			at := ""
			if entry.Time != nil {
				at = entry.Time.UTC().Format(time.RFC3339)
			}
			note(entry.Manager, string(entry.Operation), entry.Subresource, at)
		}
	}
	if !timed {
		return record.Fingerprint{}
	}
	sum := sha256.Sum256(told)
	return record.Fingerprint(sum[:len(record.Fingerprint{})])
}

func (c *computation) hash(p *pair, side record.Side, object *unstructured.Unstructured) record.Hash {
	return c.Hasher.Hash(kinds.ContentOf(p.kind, side, object))
}

func (c *computation) version(p *pair, side record.Side, object *unstructured.Unstructured) record.Version {
	return Version(c.Hasher, p.kind, side, object)
}

// Version is what a baseline keeps of one side.
func Version(hasher record.Hasher, kind kinds.Kind, side record.Side, object *unstructured.Unstructured) record.Version {
	return record.Version{
		UID:             object.GetUID(),
		ResourceVersion: object.GetResourceVersion(),
		Hash:            hasher.Hash(kinds.ContentOf(kind, side, object)),
	}
}

// Agreement is the baseline of two sides that agree now.
func Agreement(hasher record.Hasher, kind kinds.Kind, tenant, host *unstructured.Unstructured) *record.Baseline {
	return &record.Baseline{
		Tenant: Version(hasher, kind, record.Tenant, tenant),
		Host:   Version(hasher, kind, record.Host, host),
		Writes: writes(tenant),
	}
}

// Agreement is the baseline of the step's pair when it was carried out and the sides look like that now. What the intent
// knows of the side that was not written is not found out again.
func (s *Step) Agreement(hasher record.Hasher, kind kinds.Kind, tenant, host *unstructured.Unstructured) *record.Baseline {
	version := func(side record.Side, object *unstructured.Unstructured) record.Version {
		if s.Intent != nil && object == s.Source {
			return s.Intent.Source
		}
		return Version(hasher, kind, side, object)
	}
	return &record.Baseline{Tenant: version(record.Tenant, tenant), Host: version(record.Host, host), Writes: writes(tenant)}
}

// agreement is the baseline of a pair whose sides agree now; nil where nothing is recorded.
func (c *computation) agreement(p *pair) *record.Baseline {
	if !c.Recording {
		return nil
	}
	return Agreement(c.Hasher, p.kind, p.tenant, p.host)
}

// refreshed is the baseline of an unchanged pair with its present resourceVersions.
func (c *computation) refreshed(p *pair) *record.Baseline {
	known := *p.state.Baseline
	if known.Tenant.Hash.IsZero() || known.Host.Hash.IsZero() {
		return c.agreement(p)
	}
	known.Tenant.ResourceVersion = p.tenant.GetResourceVersion()
	known.Host.ResourceVersion = p.host.GetResourceVersion()
	known.Writes = writes(p.tenant)
	return &known
}

// difference lists where the mirror differs from the one wanted.
func (c *computation) difference(p *pair, want *unstructured.Unstructured) []kinds.Path {
	return kinds.Difference(kinds.ContentOf(p.kind, record.Host, p.host), kinds.ContentOf(p.kind, record.Host, want))
}
