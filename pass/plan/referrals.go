package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"

	"github.com/syncpass/syncpass/pass/kinds"
)

// referralsNamed is how many objects that are missing on the host one message names.
const referralsNamed = 5

// carried is one kind of the policy, for looking up what its objects are referred to by.
type carried struct {
	snapshot KindSnapshot
	tenant   map[types.NamespacedName]*unstructured.Unstructured
}

// dangling says, at the end of a message, what a tenant object refers to and its mirror will not find on the host, and what
// it asks for and does not get there; empty where it finds and gets everything, as far as is known.
func (c *computation) dangling(p *pair) string {
	var text strings.Builder
	more := 0
	named := 0
	for _, referral := range kinds.Referred(p.kind, p.tenant) {
		why := c.missing(referral, p.key.Namespace)
		switch {
		case why == "":
		case named == referralsNamed:
			more++
		default:
			named++
			fmt.Fprintf(&text, "; it refers to %s %s, which %s", plain(referral.Kind.String()), plain(p.key.Namespace+"/"+referral.Name), why)
		}
	}
	if more > 0 {
		fmt.Fprintf(&text, "; and to %d more that are missing", more)
	}
	if leaves, ok := p.kind.(kinds.LeavesOut); ok {
		if left := leaves.LeftOut(p.tenant); left != "" {
			text.WriteString("; " + left)
		}
	}
	return text.String()
}

// missing says why an object that is referred to has no mirror; empty where it has one, or nobody can tell.
//
//	kind in the policy   object in the tenant      | why
//	-------------------  ------------------------- | ---
//	no                   unknown                   | the policy does not carry
//	yes, not read        unknown                   | -: the kind has a decision of its own
//	yes                  none, and not optional    | the tenant does not have
//	yes                  none, optional            | -
//	yes                  left out by the policy    | the policy does not carry
//	yes                  one of the system's own   | no pass carries
//	yes                  there                     | -
func (c *computation) missing(referral kinds.Referral, namespace string) string {
	const notCarried = "the policy does not carry"
	kind := c.carried(referral.Kind)
	if kind == nil {
		return notCarried
	}
	name := types.NamespacedName{Namespace: namespace, Name: referral.Name}
	if kind.snapshot.Quiet[name] {
		return ""
	}
	_, malformed := kind.snapshot.Malformed[name]
	object := kind.tenant[name]
	switch {
	case kind.snapshot.Unavailable != "", malformed, object == nil && referral.Optional:
		return ""
	case object == nil:
		return "the tenant does not have"
	case !kinds.MayCross(kind.snapshot.kind, object):
		return "no pass carries"
	case !kind.snapshot.kind.Rules().Carry(object):
		return notCarried
	}
	return ""
}

// carried finds a kind of the policy; nil where the policy does not name it.
func (c *computation) carried(kind schema.GroupKind) *carried {
	if found, looked := c.kinds[kind]; looked {
		return found
	}
	var found *carried
	for _, snapshot := range c.Snapshot.Kinds {
		if snapshot.GroupKind() == kind && !snapshot.Retired {
			found = &carried{snapshot: snapshot, tenant: make(map[types.NamespacedName]*unstructured.Unstructured, len(snapshot.Tenant))}
			for _, object := range slices.Concat(snapshot.Apart, snapshot.Tenant) {
				found.tenant[types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()}] = object
			}
		}
	}
	c.kinds[kind] = found
	return found
}

// plain is a name as it is where it looks like one; anything else that a tenant wrote in a name's place is quoted and cut,
// since a message ends up on terminals.
func plain(name string) string {
	const limit = 2*utilvalidation.DNS1123SubdomainMaxLength + 1
	for _, r := range name {
		if !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '/' || r == ':') {
			return strconv.QuoteToASCII(name[:min(len(name), limit)])
		}
	}
	return name[:min(len(name), limit)]
}
