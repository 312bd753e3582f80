package report

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// now is when the pages of these tests are made.
var now = time.Date(2026, 3, 14, 15, 9, 26, 535000000, time.UTC)

func ago(d time.Duration) metav1.MicroTime { return metav1.NewMicroTime(now.Add(-d)) }

func resource(apiVersion, kind string, direction policy.Direction) policy.Resource {
	return policy.Resource{APIVersion: apiVersion, Kind: kind, Direction: direction}
}

func policyOf(name string, interval time.Duration) *policy.SyncPolicy {
	p := &policy.SyncPolicy{Spec: policy.SyncPolicySpec{
		DriftDetection: policy.DriftDetection{Interval: &metav1.Duration{Duration: interval}},
		Resources: []policy.Resource{
			resource("v1", "ConfigMap", policy.Bidirectional), resource("v1", "Secret", policy.Bidirectional),
			resource("v1", "Service", policy.Bidirectional), resource("v1", "Pod", policy.ToHost), resource("apps/v1", "Deployment", policy.ToHost),
		},
	}}
	p.Name = name
	p.SetDefaults()
	return p
}

// tenant is one under construction.
type tenant struct{ Tenant }

func newTenant(namespace, name string) *tenant {
	return &tenant{Tenant{
		Namespace: namespace, Name: name, Policy: policyOf("default", 5*time.Minute), History: record.NewHistory("key"),
		Run: &Run{Began: now.Add(-2 * time.Minute)},
	}}
}

// agreed adds pairs that agree, and the entries of their creation.
func (t *tenant) agreed(apiVersion, kind, prefix string, n int, since time.Duration) {
	for i := range n {
		d := t.decision(record.Create, record.NoMirror, apiVersion, kind, "shop", fmt.Sprintf("%s-%d", prefix, i))
		t.History.Set(d.Key(), record.State{Baseline: &record.Baseline{Tenant: record.Version{UID: "u1"}}})
		t.Status.Entries = append(t.Status.Entries, record.EntryOf(d, "pass", now.Add(-since)))
	}
}

func (t *tenant) decision(action record.Action, reason record.Reason, apiVersion, kind, namespace, name string) record.Decision {
	return record.Decision{Action: action, Side: record.Host, APIVersion: apiVersion, Kind: kind, TenantNamespace: namespace, TenantName: name,
		HostNamespace: t.Namespace, HostName: fmt.Sprintf("%s-x-%s-x-%s", name, namespace, t.Name), Reason: reason}
}

// holds adds a skip that stands, with its entry.
func (t *tenant) holds(d record.Decision, since time.Duration) {
	state := t.History.Get(d.Key())
	state.Standing = &record.Standing{Reason: d.Reason, Since: now.Add(-since), LastTime: now.Add(-since), Count: 1}
	t.History.Set(d.Key(), state)
	t.Status.Entries = append(t.Status.Entries, record.EntryOf(d, "pass", now.Add(-since)))
}

func (t *tenant) held(reason record.Reason, apiVersion, kind, name, message string, since time.Duration, fields ...string) {
	d := t.decision(record.Skip, reason, apiVersion, kind, "shop", name)
	d.Message, d.Fields = message, fields
	t.holds(d, since)
}

// busy is a tenant in which something of everything is open.
func busy() Tenant {
	t := newTenant("team-dev", "dev")
	t.agreed("v1", "ConfigMap", "settings", 14, 26*time.Hour)
	t.agreed("apps/v1", "Deployment", "web", 6, 26*time.Hour)
	t.agreed("v1", "Service", "web", 9, 25*time.Hour)
	t.agreed("v1", "Secret", "token", 7, 21*time.Hour)
	t.agreed("v1", "Pod", "web", 12, 9*time.Hour)
	for i := range 23 {
		action, reason := record.Update, record.TenantChanged
		if i%5 == 4 {
			action, reason = record.Delete, record.TenantDeleted
		}
		d := t.decision(action, reason, "v1", "ConfigMap", "shop", fmt.Sprintf("settings-%d", i%14))
		t.Status.Entries = append(t.Status.Entries, record.EntryOf(d, "pass", now.Add(-time.Duration(24-i)*47*time.Minute)))
	}
	t.held(record.Conflict, "v1", "ConfigMap", "settings-3", "both sides changed since they last agreed", 3*time.Hour, "data.level", "data.theme")
	t.held(record.Conflict, "v1", "ConfigMap", "settings-5", "the tenant object is gone, and its mirror was changed", 2*time.Hour)
	t.held(record.Conflict, "v1", "Secret", "token-1", "both sides changed since they last agreed", 50*time.Minute, "data.password")
	t.held(record.NoHistory, "v1", "Service", "legacy", "the sides differ and no agreement is recorded", 26*time.Hour, "spec.ports[0].port")
	rejected := t.decision(record.Skip, record.Rejected, "v1", "Pod", "shop", "web-2")
	rejected.Message, rejected.Error = "the host refused the write", "pods \"web-2-x-shop-x-dev\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=12, limited: pods=12"
	t.holds(rejected, 8*time.Hour)
	t.held(record.NotOwned, "v1", "ConfigMap", "taken", "a host object that is not ours stands where the mirror belongs", 70*time.Minute)
	whole := t.decision(record.Skip, record.KindUnavailable, "stable.example.com/v1", "CronTab", "", "")
	whole.Message, whole.HostName, whole.HostNamespace = "the host does not serve it", "", ""
	t.holds(whole, 20*time.Hour)
	// A write of which nobody knows yet whether it landed, and a kind that left the policy.
	t.History.Set(record.Key{Kind: "ConfigMap", Namespace: "shop", Name: "sent"}, record.State{Intent: &record.Intent{Side: record.Host, Path: "data.a"}})
	t.History.Set(record.Key{Group: "batch", Kind: "Job", Namespace: "shop", Name: "once"}, record.State{Baseline: &record.Baseline{Tenant: record.Version{UID: "u1"}}})
	t.Status.LastPass = &record.LastPass{
		ID: "20260314T145900Z-abcde", StartTime: ago(50*time.Minute + 1874*time.Millisecond), EndTime: ago(50 * time.Minute), Outcome: record.CompletedWithErrors,
		Counts: record.Counts{Update: 1, Skip: 7, Unchanged: 45, Error: 1, Requests: 31},
	}
	return t.Tenant
}

const planID = "0123456789abcdef"

// guarded is a tenant whose deletes are withheld.
func guarded() Tenant {
	t := newTenant("team-prod", "shop")
	t.Run.Holder = "host_1/20260314T150800Z-fghij"
	how := "; if it is right, let exactly this plan through: kubectl annotate -n team-prod tenantcluster shop --overwrite tenantplane.io/confirm-deletes="
	cause := "the plan deletes more than 50 % of the 18 mirrors"
	t.agreed("v1", "ConfigMap", "settings", 18, 90*time.Minute)
	for i := range 11 {
		t.held(record.GuardMaxDeletes, "v1", "ConfigMap", fmt.Sprintf("settings-%d", i), "Delete (TenantDeleted) withheld: "+cause+how+planID, 12*time.Minute)
	}
	t.Status.LastPass = &record.LastPass{
		ID: "20260314T145726Z-klmno", StartTime: ago(12*time.Minute + 420*time.Millisecond), EndTime: ago(12 * time.Minute), Outcome: record.Guarded,
		Message: "11 changes withheld: " + cause + how + planID, Counts: record.Counts{Skip: 11, Unchanged: 7, Requests: 9},
	}
	return t.Tenant
}

// unread is a tenant of which little could be read.
func unread() Tenant {
	return Tenant{Namespace: "team-new", Name: "fresh", Problems: []string{
		`SyncPolicy "strict" (named by TenantCluster team-new/fresh) does not exist on the host: create it, or name another one in spec.syncPolicyRef.name`,
	}}
}

// sample is a page with all of them.
func sample() Input {
	return Input{Now: now, Command: "runner", Tenants: []Tenant{busy(), unread(), guarded()}}
}
