package report

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/record"
)

// kindRow counts the pairs of one kind, each in one column.
type kindRow struct {
	// Kind is Kind.group. Direction is the policy's, or says why there is none.
	Kind, Direction string
	// Agreed: nothing is open. Conflict: a person must say which side to keep. Withheld: by a guard. Held: for any other
	// reason. Unconfirmed: a write was sent, and no pass has seen yet whether it landed.
	Agreed, Conflict, Withheld, Held, Unconfirmed, All int
}

// states are the columns of a kindRow, and counts what stands in them.
var states = []string{"Agreed", "Conflict", "Withheld", "Held", "Unconfirmed", "All"}

func (r kindRow) counts() []int {
	return []int{r.Agreed, r.Conflict, r.Withheld, r.Held, r.Unconfirmed, r.All}
}

// count adds a pair, under the first state that it is in:
//
//	standing skip Conflict, NoHistory, HistoryOff | conflict
//	standing skip of a guard                      | withheld
//	any other standing skip                       | held
//	an intent                                     | unconfirmed
//	a baseline alone                              | agreed
func (r *kindRow) count(s record.State) {
	r.All++
	switch {
	case s.Standing != nil && isConflict(s.Standing.Reason):
		r.Conflict++
	case s.Standing != nil && isGuard(s.Standing.Reason):
		r.Withheld++
	case s.Standing != nil:
		r.Held++
	case s.Intent != nil:
		r.Unconfirmed++
	default:
		r.Agreed++
	}
}

func isConflict(reason record.Reason) bool {
	return reason == record.Conflict || reason == record.NoHistory || reason == record.HistoryOff
}

func isGuard(reason record.Reason) bool {
	return reason == record.GuardMaxDeletes || reason == record.GuardEmptyTenant || reason == record.GuardTenantIdentity
}

// pairsOf counts the pairs: the kinds of the policy in its order, then those that it does not name, sorted.
func pairsOf(t Tenant) (rows []kindRow, total kindRow) {
	at := map[schema.GroupKind]int{}
	outside := "not known"
	if t.Policy != nil {
		outside = "not in the policy"
		for _, r := range t.Policy.Spec.Resources {
			kind := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind).GroupKind()
			at[kind] = len(rows)
			rows = append(rows, kindRow{Kind: plain(kind.String()), Direction: plain(string(r.Direction))})
		}
	}
	for key, state := range t.History.All() {
		if key.Name == "" { // a whole kind, or the policy itself
			continue
		}
		i, found := at[key.GroupKind()]
		if !found {
			i = len(rows)
			at[key.GroupKind()] = i
			rows = append(rows, kindRow{Kind: plain(key.GroupKind().String()), Direction: outside})
		}
		rows[i].count(state)
		total.count(state)
	}
	return rows, total
}
