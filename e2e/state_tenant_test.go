package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// faultsOfTenants are tenants that are not the one, or not in the state, that the record is about.
func faultsOfTenants() []fault {
	const letThrough = "if it is right, let exactly this plan through: kubectl annotate"
	wentBack := map[string]string{"made": "", "gone": "", "pulled": "Skip GuardTenantIdentity",
		"late": "Skip GuardTenantIdentity", "pushed": "Skip GuardTenantIdentity", "kept": "Skip GuardTenantIdentity"}
	lots := func(i int) string { return fmt.Sprintf("many-%02d", i) }
	many := func(t *testing.T, p *duePlace) {
		for i := range 12 {
			p.set(t, record.Tenant, lots(i), "1")
		}
		p.pass(t, 0, nil)
	}
	tooMany := map[string]string{"made": "", "pushed": "", "pulled": "", "gone": ""}
	for i := range 12 {
		tooMany[lots(i)] = "Skip GuardMaxDeletes"
	}
	return []fault{
		{name: "F17 the tenant is restored from a backup", exit: 4, decisions: wentBack, then: map[string]string{},
			says: []string{"the tenant went back in time", "it was restored from a backup, or an outdated replica answers", letThrough},
			spoil: func(t *testing.T, p *duePlace) {
				before := p.takeBackup(t)
				p.goOn(t)
				p.restore(t, before)
			},
			check: func(t *testing.T, p *duePlace, spoilt spoiltPass) {
				nothingWritten(t, p, spoilt)
				p.requireBoth(t, "late", "1", "1")
				p.requireBoth(t, "pushed", "4", "4")
			}},
		{name: "F17 a tenant restored from a backup is confirmed", exit: 0, then: map[string]string{},
			decisions: map[string]string{"made": "", "gone": "", "pulled": "Update TenantChanged",
				"late": "Delete TenantDeleted", "pushed": "Update TenantChanged", "kept": "Create NoMirror"},
			spoil: func(t *testing.T, p *duePlace) {
				before := p.takeBackup(t)
				p.goOn(t)
				p.restore(t, before)
				p.confirm(t)
			},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) {
				require.Equal(t, "", p.value(t, record.Host, "late"))
				require.Equal(t, "2", p.value(t, record.Host, "pushed"))
				require.Equal(t, "1", p.value(t, record.Host, "pulled"))
				require.Equal(t, "1", p.value(t, record.Host, "kept"))
			},
			// The tenant behind the proxy never went back; what is left of the restore is taken up from there.
			mend: func(t *testing.T, p *duePlace) {
				p.remove(t, record.Tenant, "late")
				p.set(t, record.Tenant, "kept", "1")
			}},
		{name: "F18 a tenant restored with a bump of its revision has lost most objects", exit: 4, then: map[string]string{},
			says:      []string{"the plan deletes more than 50 % of the", letThrough},
			decisions: tooMany,
			spoil: func(t *testing.T, p *duePlace) {
				many(t, p)
				for i := range 12 {
					p.remove(t, record.Tenant, lots(i))
				}
			},
			check: nothingWritten,
			mend:  func(t *testing.T, p *duePlace) { p.confirm(t) }},
		{name: "F20 all objects of the tenant have new UIDs and the same content", landed: []string{"made", "pushed", "pulled", "gone"}, then: map[string]string{},
			decisions: map[string]string{"gone": "", "made": "Update TenantChanged", "pushed": "Update TenantChanged", "pulled": "Update TenantChanged", "kept": "Update TenantChanged"},
			says:      []string{"the tenant object was deleted and made again; the mirror's marks follow"},
			spoil: func(t *testing.T, p *duePlace) {
				p.pass(t, 0, nil)
				p.makeAgain(t, "made", "pushed", "pulled", "kept")
			},
			check: func(t *testing.T, p *duePlace, spoilt spoiltPass) {
				for _, d := range spoilt.Decisions {
					require.Equal(t, []string{"metadata"}, d.Fields)
				}
				require.Zero(t, spoilt.Counts.Delete)
			}},
		{name: "F22 most of a kind is missing from the tenant's list", exit: 4, decisions: tooMany, then: map[string]string{}, check: nothingWritten,
			says: []string{"the plan deletes more than 50 % of the", letThrough},
			spoil: func(t *testing.T, p *duePlace) {
				many(t, p)
				altered(record.Tenant, func(p *duePlace, list object) {
					for i := range 12 {
						_, index := p.itemOf(list, record.Tenant, lots(i))
						without(list, index)
					}
				})(t, p)
			}},
		{name: "F21 the tenant has lost all objects of a kind", exit: 4, then: map[string]string{},
			says: []string{"the tenant lists no object of this kind that the policy carries while the host has 10 or more mirrors", letThrough},
			decisions: func() map[string]string {
				held := everything("Skip GuardEmptyTenant")
				held["gone"], held["kept"] = "", "Skip GuardEmptyTenant"
				for i := range 12 {
					held[lots(i)] = "Skip GuardEmptyTenant"
				}
				return held
			}(),
			spoil: func(t *testing.T, p *duePlace) {
				many(t, p)
				require.NoError(t, p.objects(record.Tenant, configMaps).DeleteCollection(p.s.context(t), metav1.DeleteOptions{}, metav1.ListOptions{}))
			},
			check: nothingWritten,
			mend:  func(t *testing.T, p *duePlace) { p.confirm(t) }},
		{name: "F23 another cluster answers", exit: 4, decisions: everything("Skip GuardTenantIdentity"), check: nothingWritten,
			says: []string{`another tenant answers behind the kubeconfig: kube-system has UID`, "of-another-cluster", letThrough},
			spoil: func(_ *testing.T, p *duePlace) {
				p.tenantProxy.SetFilter(func(r proxy.Request, _ proxy.Answer) http.Handler { return otherCluster(r) })
			}},
		{name: "F23 another cluster answers that has nothing", exit: 4, check: nothingWritten,
			decisions: map[string]string{"made": "", "pushed": "Skip GuardTenantIdentity", "pulled": "Skip Conflict",
				"gone": "Skip GuardTenantIdentity", "kept": "Skip GuardTenantIdentity"},
			says: []string{"another tenant answers behind the kubeconfig", letThrough},
			spoil: func(t *testing.T, p *duePlace) {
				p.tenantProxy.SetFilter(func(r proxy.Request, _ proxy.Answer) http.Handler {
					for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
						if r.Path == "/api/v1/"+strings.ToLower(kind)+"s" {
							return proxy.Body(http.StatusOK, "application/json", []byte(strings.ReplaceAll(emptyList("", "999999999"), "ConfigMap", kind)))
						}
					}
					return otherCluster(r)
				})
			}},
		hostForTenant(fault{name: "F23 the kubeconfig leads to the host itself", exit: 4, skips: true, check: nothingWritten,
			says: []string{"another tenant answers behind the kubeconfig", letThrough}}),
	}
}

// hostForTenant makes the tenant's kubeconfig the host's own.
func hostForTenant(f fault) fault {
	var before []byte
	f.spoil = func(t *testing.T, p *duePlace) {
		before = p.kubeconfig(t)
		host, err := os.ReadFile(p.binary.Env["SYNCPASS_HOST_KUBECONFIG"])
		require.NoError(t, err)
		p.setKubeconfig(t, host)
	}
	f.mend = func(t *testing.T, p *duePlace) { p.setKubeconfig(t, before) }
	return f
}

// faultsOfPolicies are policies that are others than at the last pass.
func faultsOfPolicies() []fault {
	only := func(directions map[string]string) func(*testing.T, *duePlace) {
		return func(t *testing.T, p *duePlace) {
			spec := duePolicy()
			var resources []any
			for _, kind := range []string{"ConfigMap", "Secret", "Service"} {
				if direction := directions[kind]; direction != "" {
					resources = append(resources, object{"apiVersion": "v1", "kind": kind, "direction": direction})
				}
			}
			spec["resources"] = resources
			p.setPolicy(t, spec)
		}
	}
	without := only(map[string]string{"Secret": "bidirectional", "Service": "toHost"})
	back := func(t *testing.T, p *duePlace) { p.setPolicy(t, duePolicy()) }
	retired := everything("Delete KindRetired")
	retired["made"], retired["kept"] = "", "Delete KindRetired"
	return []fault{
		{name: "F52 a kind has left the policy", decisions: everything(""), spoil: without, mend: back, check: nothingWritten},
		{name: "F52 a kind has left the policy and is to be retired", env: map[string]string{"SYNCPASS_RETIRE_KINDS": "true"},
			decisions: retired, spoil: without, then: map[string]string{},
			says: []string{"ConfigMap left the policy and SYNCPASS_RETIRE_KINDS is on"},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) {
				p.requireBoth(t, "kept", "1", "")
				p.requireBoth(t, "pushed", "2", "")
			}},
		{name: "F52 a kind's direction is turned to the host", spoil: only(map[string]string{"ConfigMap": "toHost", "Secret": "bidirectional", "Service": "toHost"}),
			decisions: map[string]string{"pulled": "Update HostDrifted"}, then: map[string]string{},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "pulled", "1", "1") }},
		{name: "F52 a kind's direction is turned to the tenant", spoil: only(map[string]string{"ConfigMap": "fromHost", "Secret": "bidirectional", "Service": "toHost"}),
			decisions: map[string]string{"pushed": "Update HostWins"}, then: map[string]string{},
			check: func(t *testing.T, p *duePlace, _ spoiltPass) { p.requireBoth(t, "pushed", "1", "1") }},
		{name: "F52 the policy cannot be read any more", exit: 5, nothing: true, check: nothingWritten,
			spoil: answer(record.Host, proxy.Before, func(_ *duePlace, r proxy.Request) bool { return strings.Contains(r.Path, "/syncpolicies/") },
				proxy.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "no")),
			says: []string{"SyncPolicy", "cannot be read", "grant it to this runner: see manifests/base"}},
	}
}

// makeAgain deletes ConfigMaps of the tenant and makes them anew with their content.
func (p *duePlace) makeAgain(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range slices.Sorted(slices.Values(names)) {
		value := p.value(t, record.Tenant, name)
		p.remove(t, record.Tenant, name)
		p.set(t, record.Tenant, name, value)
	}
}
