package plan

import "github.com/syncpass/syncpass/record"

// HoldUndecided is for a plan whose Undecided nobody can ask about: what hangs on the answer becomes a Skip that says so,
// since a host's own defaults may be all that the sides differ by. It returns how many pairs that are.
func (p *Plan) HoldUndecided() int {
	hangs := map[record.Key]bool{}
	for i := range p.Undecided {
		hangs[p.Undecided[i].Key] = true
	}
	held := 0
	for i := range p.Steps {
		step := &p.Steps[i]
		if !hangs[step.Key] || step.Reason == record.GuardTenantIdentity {
			continue
		}
		held++
		if step.Action == record.Skip {
			step.Message += "; undecided: if the host's own defaults are all that differs, which only a dry run there tells, nothing is held"
			continue
		}
		step.Message = "undecided: only a dry run on the host tells whether its own defaults are all that differs; if not: " +
			string(step.Action) + " (" + string(step.Reason) + ") on the " + string(step.Side)
		step.Action, step.Reason = record.Skip, record.NoHistory
		step.Want, step.Intent, step.Then = nil, nil, nil
	}
	return held
}
