package modeltest

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/record"
)

// ghost is what only the model knows of a pair.
type ghost struct {
	// agreed is the content of the last agreement, and uid the tenant object's then: what a pass wrote and an API server
	// took, or an equality that a pass saw and recorded. Empty where there has been none.
	agreed string
	uid    types.UID
	// undone is the content of the last agreement before the host was restored from a backup. The host has forgotten it, but
	// the tenant may still have it, by the write of a pass that an intent in the backup tells of.
	undone string
	// recorded is the content of the last agreement that the SyncDecision has, empty where it has none.
	recorded string
	// loose: a pass has written since, under a policy that named a winner or recorded nothing, and so told nobody.
	loose bool
	// misled: a pass that records nothing has written while an intent of an earlier one was stored. Whoever reads that
	// later cannot know.
	misled bool
	// unrecorded is the side of a write that a pass intended and whose outcome none has recorded yet; excused says that
	// people touched that side meanwhile, or that it was an object to be made and a pass found none, so nobody can tell what
	// happened; forgotten that the record was lost.
	unrecorded         record.Side
	excused, forgotten bool
}

func (g *ghost) agree(content string, uid types.UID) {
	g.agreed, g.uid, g.undone, g.excused, g.forgotten, g.misled = content, uid, "", false, false, false
}

// was says whether the content of a side is one that both agreed on, as far as passes can know.
func (g *ghost) was(side record.Side, content string) bool {
	return content == g.agreed || g.loose && content == g.recorded || side == record.Tenant && content == g.undone || g.misled
}

// bothMoved says whether both sides of a pair, as the pass saw them, moved away from what was agreed on.
func (p *Pass) bothMoved(pair string) bool {
	g := p.m.ghosts[pair]
	tenant, tenantThere := p.seen[record.Tenant][pair]
	host, hostThere := p.seen[record.Host][pair]
	return (!tenantThere || tenant.content != g.agreed || tenant.uid != g.uid) && (!hostThere || host.content != g.agreed)
}

// inDoubt says whether nobody can tell of a pair which side moved.
func (p *Pass) inDoubt(pair string) bool {
	g := p.m.ghosts[pair]
	return g.agreed == "" || g.excused || g.forgotten || g.loose || g.misled || p.leftNoTrace(pair)
}

// leftNoTrace says whether an earlier pass was about to write a tenant object and recorded no outcome, and this one saw none:
// it may have been written before it was deleted or left out, or never have been.
func (p *Pass) leftNoTrace(pair string) bool {
	if p.known == nil {
		return false
	}
	intent := p.known.history.Get(key(pair)).Intent
	_, there := p.seen[record.Tenant][pair]
	return intent != nil && intent.Side == record.Tenant && !there
}
