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
	var have kinds.Content
	switch {
	case target != nil:
		intent.Target = c.version(p, side, target)
		have = kinds.ContentOf(p.kind, side, target)
	case side == record.Host:
		return intent // its marks say already who made it
	}
	for _, path := range kinds.Difference(have, wanted) {
		if path.At(wanted) != nil {
			intent.Path = strings.Join(path, pathSeparator)
			break
		}
	}
	return intent
}

// settle finds out what became of the write that an earlier pass intended and did not record.
//
//	the written object is            | then
//	as intended, changed field ours  | it landed: the sides agreed then
//	the version that was read        | it did not land: the last recorded agreement stays
//	a mirror created, kept verbatim  | it landed, and somebody changed the mirror since: nobody else makes one
//	to change in its marks alone     | landed or not: the contents agreed then
//	a tenant object, and gone        | nobody can tell either
//	anything else                    | nobody can tell whether they agreed before or after it, so both sides count as changed
func (c *computation) settle(p *pair) {
	intent := p.state.Intent
	if intent == nil || intent.Side == record.Tenant && p.retired {
		return // of a kind that left the policy nobody reads the tenant's side; the question stays until somebody does
	}
	p.settled = true
	p.state.Intent = nil
	written := p.host
	if intent.Side == record.Tenant {
		written = p.tenant
	}
	switch {
	case written == nil && intent.Side == record.Tenant && p.state.Baseline != nil:
		p.state.Baseline = doubted(*p.state.Baseline) // it may have landed before the tenant object was deleted
		return
	case written == nil || intent.Want.IsZero():
		return
	}
	now := c.version(p, intent.Side, written)
	switch {
	case now.Hash == intent.Want && wroteLast(intent, written):
		p.state.Baseline = agreed(intent, now)
	case intent.Target.UID == "" && intent.Side == record.Host && p.kind.Verbatim(), intent.Want == intent.Target.Hash:
		p.state.Baseline = agreed(intent, record.Version{UID: now.UID, Hash: intent.Want})
	case now.UID == intent.Target.UID && now.ResourceVersion == intent.Target.ResourceVersion && now.Hash == intent.Target.Hash:
	case p.state.Baseline != nil:
		p.state.Baseline = doubted(*p.state.Baseline)
	}
}

// wroteLast says whether an object that is as intended is so by the write that was intended. Of a write that only removes,
// nothing tells. A tenant object that was to be made and has no field to tell by may be anybody's.
func wroteLast(intent *record.Intent, written *unstructured.Unstructured) bool {
	if intent.Path == "" {
		return intent.Side == record.Host || intent.Target.UID != ""
	}
	return kinds.ManagedByUs(written, strings.Split(intent.Path, pathSeparator)...)
}

// agreed is the baseline of a write that landed. Nobody knows what else of that pass was carried out, so the pair is looked
// at whatever its resourceVersions say.
func agreed(intent *record.Intent, written record.Version) *record.Baseline {
	written.ResourceVersion = ""
	if intent.Side == record.Tenant {
		return &record.Baseline{Tenant: written, Host: intent.Source}
	}
	return &record.Baseline{Tenant: intent.Source, Host: written}
}

// doubted is a baseline in which the contents are unknown, so that any other version of a side counts as changed.
func doubted(known record.Baseline) *record.Baseline {
	known.Tenant.Hash, known.Host.Hash = record.Hash{}, record.Hash{}
	return &known
}
