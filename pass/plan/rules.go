package plan

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/policy"
)

// govern puts each kind under what the policy says about it. Where that cannot be understood, which a validated policy
// does not come to, the kind is unknown: to carry too much of it, or to take what is left out for deleted, would be a
// guess.
func (c *computation) govern() {
	c.Snapshot.Kinds = slices.Clone(c.Snapshot.Kinds)
	for i := range c.Snapshot.Kinds {
		snapshot := &c.Snapshot.Kinds[i]
		rules, err := rulesOf(snapshot.Resource)
		if err != nil && snapshot.Unavailable == "" {
			snapshot.Unavailable = err.Error()
		}
		snapshot.kind = kinds.With(snapshot.GroupKind(), rules)
	}
}

// rulesOf are a policy's words about one kind as the kind takes them.
func rulesOf(resource policy.Resource) (kinds.Rules, error) {
	rules := kinds.Rules{Namespaces: resource.Namespaces}
	for _, reference := range resource.References {
		path, err := policy.ParsePath(reference.Path)
		if err != nil {
			return kinds.Rules{}, fmt.Errorf("the policy's reference %q %w", reference.Path, err)
		}
		rules.References = append(rules.References, kinds.Reference{Path: path, Kind: reference.GroupKind()})
	}
	if resource.Selector == nil {
		return rules, nil
	}
	selector, err := metav1.LabelSelectorAsSelector(resource.Selector)
	if err != nil {
		return kinds.Rules{}, fmt.Errorf("the policy's selector: %w", err)
	}
	rules.Selector = selector
	return rules, nil
}

// unrenamed says whether a pair that nobody touched has to be written all the same, since the policy has come to list a
// reference that is not renamed on its mirror. Where the host is the authority, its word stands; and what runs does not
// change any more.
func (c *computation) unrenamed(p *pair) bool {
	_, runs := p.kind.(kinds.Runs)
	return !runs && p.authority != policy.FromHost && c.Mapping.Unrenamed(p.kind, p.tenant, p.host)
}

// changed says what the tenant's content is written over the mirror for.
func (p *pair) changed() string {
	if p.unrenamed {
		return "the policy lists a reference that the mirror still had under the tenant's name"
	}
	return "changed in the tenant"
}
