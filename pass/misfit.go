package pass

import (
	"fmt"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// scheduleKey is what history remembers a schedule that does not fit under: the policy's kind, which no pair is of.
var scheduleKey = record.Key{Group: policy.GroupVersion.Group, Kind: "SyncPolicy"}

// compareSchedule adds a skip where passes are started at other times than the policy asks for. It stands from pass to pass
// as any other: one entry, one Event, and a pass that finds it again writes nothing. Where it is over, history forgets it.
func (r *run) compareSchedule(planned *plan.Plan) {
	message := misfit(r.target.policy.Schedule(), r.Options)
	known := record.State{}
	if r.recording != nil {
		known = r.recording.history.Get(scheduleKey)
	}
	if message == "" {
		if known != (record.State{}) {
			planned.History = append(planned.History, plan.Change{Key: scheduleKey})
		}
		return
	}
	message = fmt.Sprintf("SyncPolicy %q %s", r.target.policy.Name, message)
	planned.Steps = append(planned.Steps, plan.Step{
		Key: scheduleKey, State: known,
		Decision: record.Decision{
			Action: record.Skip, Side: record.Host, Reason: record.ScheduleMismatch,
			APIVersion: policy.GroupVersion.String(), Kind: scheduleKey.Kind, Message: message,
			Fields: []string{"spec.driftDetection.interval"},
		},
	})
}

// misfit says how a schedule differs from the one that passes were rendered for; empty where it does not, or where none is
// known. What cron says in the same way is the same: within a minute, the process that it starts follows the policy by
// itself. A schedule for several tenants may be too dense for one of them.
func misfit(wanted policy.Schedule, o Options) string {
	if o.RenderedInterval == 0 || !wanted.Enabled {
		return ""
	}
	is, should := policy.CronFor(o.RenderedInterval), policy.CronFor(wanted.Interval)
	if is.Expression == should.Expression || o.RenderedForAll && is.Longest <= should.Longest {
		return ""
	}
	return fmt.Sprintf("asks for a pass every %s, and the schedule that started this one was rendered for every %s (%s, where %s is right): render the manifests again with `runner render`",
		wanted.Interval, o.RenderedInterval, is.Expression, should.Expression)
}
