package plan

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// pathSeparator joins a path's keys in an intent; no API key holds a line break.
const pathSeparator = "\n"

// moved says whether one side changed since the last agreement: another object under the name, or other content. On the
// host, where a restored backup takes the history back as well, an equal resourceVersion of the same object is certainly
// unchanged. A tenant that was restored goes through the same resourceVersions once more, so there it says nothing; a
// different one never does.
func (c *computation) moved(p *pair, side record.Side, object *unstructured.Unstructured, known record.Version) bool {
	same := object.GetResourceVersion() == known.ResourceVersion
	switch {
	case object.GetUID() != known.UID:
		return true
	case known.Hash.IsZero(): // made with a key that is no more; then resourceVersions alone tell
		return !same
	case same && side == record.Host:
		return false
	}
	return c.hash(p, side, object) != known.Hash
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

// agreement is the baseline of a pair whose sides agree now.
func (c *computation) agreement(p *pair) *record.Baseline {
	if !c.Recording {
		return nil
	}
	return &record.Baseline{Tenant: c.version(p, record.Tenant, p.tenant), Host: c.version(p, record.Host, p.host)}
}

// refreshed is the baseline of an unchanged pair with its present resourceVersions.
func (c *computation) refreshed(p *pair) *record.Baseline {
	known := *p.state.Baseline
	if known.Tenant.Hash.IsZero() || known.Host.Hash.IsZero() {
		return c.agreement(p)
	}
	known.Tenant.ResourceVersion = p.tenant.GetResourceVersion()
	known.Host.ResourceVersion = p.host.GetResourceVersion()
	return &known
}

// difference lists where the mirror differs from the one wanted.
func (c *computation) difference(p *pair, want *unstructured.Unstructured) []kinds.Path {
	return kinds.Difference(kinds.ContentOf(p.kind, record.Host, p.host), kinds.ContentOf(p.kind, record.Host, want))
}

// intent is what is stored before a write where both sides may change; nil elsewhere, since an authority needs no
// history to repeat itself.
func (c *computation) intent(p *pair, side record.Side, target, source, want *unstructured.Unstructured) *record.Intent {
	if !c.Recording || p.authority != policy.Bidirectional {
		return nil
	}
	other := record.Tenant
	if side == record.Tenant {
		other = record.Host
	}
	wanted := kinds.ContentOf(p.kind, side, want)
	intent := &record.Intent{Side: side, Want: c.Hasher.Hash(wanted), Source: c.version(p, other, source)}
	if target == nil {
		return intent
	}
	intent.Target = c.version(p, side, target)
	for _, path := range kinds.Difference(kinds.ContentOf(p.kind, side, target), wanted) {
		if path.At(wanted) != nil {
			intent.Path = strings.Join(path, pathSeparator)
			break
		}
	}
	return intent
}
