package pass

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestFilesArePlannedAsClustersAre(t *testing.T) {
	app := configMap("app", "1", "10")
	mirror := mirrorOf(app, "20")
	for _, test := range []struct {
		name         string
		kind         string
		tenant, host *unstructured.Unstructured
		forgotten    bool
		want         string
	}{
		{"new", twoWay, app, nil, true, "Create host app NoMirror, 0 unchanged"},
		{"unchanged", twoWay, app, mirror, false, "1 unchanged"},
		{"changed in the tenant", twoWay, edited(app, "2", "11"), mirror, false, "Update host app TenantChanged, 0 unchanged"},
		{"changed on the host", twoWay, app, edited(mirror, "2", "21"), false, "Update tenant app HostChanged, 0 unchanged"},
		{"touched on both sides", twoWay, edited(app, "1", "11"), edited(mirror, "1", "21"), false, "1 unchanged"},
		{"changed on both", twoWay, edited(app, "2", "11"), edited(mirror, "3", "21"), false, "Skip host app Conflict, 0 unchanged"},
		{"different without a history", twoWay, app, edited(mirror, "2", "21"), true, "Skip host app NoHistory, 0 unchanged"},
		{"deleted in the tenant", twoWay, nil, mirror, false, "Delete host app TenantDeleted, 0 unchanged"},
		{"deleted in the tenant, changed on the host", twoWay, nil, edited(mirror, "2", "21"), false, "Skip host app Conflict, 0 unchanged"},
		{"deleted on the host", twoWay, app, nil, false, "Create host app MirrorDeleted, 0 unchanged"},
		{"drifted", toHost, app, edited(mirror, "2", "21"), false, "Update host app HostDrifted, 0 unchanged"},
		{"edited in the tenant's file alone", twoWay, edited(app, "2", "10"), mirror, false, "Update host app TenantChanged, 0 unchanged"},
		{"edited in the host's file alone", twoWay, app, edited(mirror, "2", "20"), false, "Update tenant app HostChanged, 0 unchanged"},
		{"broken in the host's file", twoWay, app, broken(mirror), false, "Update tenant app HostChanged, 0 unchanged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPrintedSides(t, test.kind)
			p.see(t, test.tenant, test.host)
			if !test.forgotten {
				p.agreed(t, app, mirror)
			}
			assert.Equal(t, test.want, p.decided(t))
		})
	}
}

// Manifests, as people write them, have neither uid nor resourceVersion, and are about the object of their name.
func TestManifestsStandForTheObjectsOfTheirNames(t *testing.T) {
	app := configMap("app", "1", "10")
	mirror := mirrorOf(app, "20")
	written := func(object *unstructured.Unstructured) *unstructured.Unstructured {
		bare := object.DeepCopy()
		bare.SetUID("")
		bare.SetResourceVersion("")
		return bare
	}
	for _, test := range []struct {
		name         string
		tenant, host *unstructured.Unstructured
		want         string
	}{
		{"the same", written(app), mirror, "1 unchanged"},
		{"the same on both sides", written(app), written(mirror), "1 unchanged"},
		{"changed in the tenant", written(edited(app, "2", "")), mirror, "Update host app TenantChanged, 0 unchanged"},
		{"changed on the host", app, written(edited(mirror, "2", "")), "Update tenant app HostChanged, 0 unchanged"},
		{"without a mirror", written(app), nil, "Create host app MirrorDeleted, 0 unchanged"},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPrintedSides(t, twoWay)
			p.host[0] = strings.Replace(p.host[0], ", uid: owner", "", 1)
			p.see(t, test.tenant, test.host)
			p.agreed(t, app, mirror)
			assert.Equal(t, test.want, p.decided(t))
		})
	}
}

// Without the tenant's credential the history's hashes say nothing: what differs on two sides that both count is held.
func TestWithoutTheKeyTwoWayPairsThatDifferAreHeld(t *testing.T) {
	app := configMap("app", "1", "10")
	mirror := mirrorOf(app, "20")
	for _, test := range []struct {
		name         string
		kind         string
		tenant, host *unstructured.Unstructured
		want         string
		said         bool
	}{
		{"equal", twoWay, app, mirror, "1 unchanged", true},
		{"changed in the tenant", twoWay, edited(app, "2", "11"), mirror, "Skip host app NoHistory, 0 unchanged", true},
		{"edited in the tenant's file alone", twoWay, edited(app, "2", "10"), mirror, "Skip host app NoHistory, 0 unchanged", true},
		{"changed in the tenant that wins", toHost, edited(app, "2", "10"), mirror, "Update host app HostDrifted, 0 unchanged", true},
		{"deleted in the tenant", twoWay, nil, mirror, "Delete host app TenantDeleted, 0 unchanged", false},
		{"deleted in the tenant, touched on the host", twoWay, nil, edited(mirror, "1", "21"), "Skip host app Conflict, 0 unchanged", false},
		{"deleted on the host", twoWay, app, nil, "Create host app MirrorDeleted, 0 unchanged", false},
	} {
		for _, way := range []string{"no Secret", "a redacted Secret", "another credential"} {
			t.Run(test.name+", "+way, func(t *testing.T) {
				p := newPrintedSides(t, test.kind)
				switch way {
				case "no Secret":
					p.host = p.host[:2]
				case "a redacted Secret":
					p.host[2] = "{apiVersion: v1, kind: Secret, metadata: {namespace: team-dev, name: dev-kubeconfig}, data: {kubeconfig: '***'}}"
				default:
					file := filepath.Join(t.TempDir(), "kubeconfig")
					require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, tenantKubeconfig, "another-token"), 0o600))
					p.options.TenantKubeconfigFile = file
				}
				p.see(t, test.tenant, test.host)
				p.agreed(t, app, mirror)
				assert.Equal(t, test.want, p.decided(t))
				assert.Equal(t, test.said, strings.Contains(p.log.String(), "judged without their history"), "%s", p.log.String())
			})
		}
	}
}

func TestTheKeyCanComeFromAFile(t *testing.T) {
	app := configMap("app", "1", "10")
	mirror := mirrorOf(app, "20")
	p := newPrintedSides(t, twoWay)
	p.host = p.host[:2]
	p.options.TenantKubeconfigFile = filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(p.options.TenantKubeconfigFile, fmt.Appendf(nil, tenantKubeconfig, "secret-token"), 0o600))
	p.see(t, edited(app, "2", "11"), mirror)
	p.agreed(t, app, mirror)
	assert.Equal(t, "Update host app TenantChanged, 0 unchanged", p.decided(t))
	assert.NotContains(t, p.log.String(), "judged without their history")
}

func TestTheRecordCanComeFromAFileWithItsPages(t *testing.T) {
	p := newPrintedSides(t, twoWay)
	app := configMap("app", "1", "10")
	mirror := mirrorOf(app, "20")
	p.see(t, edited(app, "2", "11"), mirror)
	p.agreed(t, app, mirror)
	p.decision = []string{p.record(t)}
	assert.Equal(t, "Update host app TenantChanged, 0 unchanged", p.decided(t))
}

func TestTheTenantsIdentityIsTakenFromTheRecordWhereFilesDoNotSay(t *testing.T) {
	app := configMap("app", "1", "10")
	for name, test := range map[string]struct{ namespace, want string }{
		"not said":         {"", "Create host app NoMirror, 0 unchanged"},
		"the recorded":     {"of-the-tenant", "Create host app NoMirror, 0 unchanged"},
		"another tenant's": {"of-another", "Skip host app GuardTenantIdentity, 0 unchanged"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPrintedSides(t, twoWay)
			p.tenantUID = "of-the-tenant"
			p.see(t, app, nil)
			if test.namespace != "" {
				p.tenant = append(p.tenant, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: "+test.namespace+"}}")
			}
			p.decision = []string{p.record(t)}
			assert.Equal(t, test.want, p.decided(t))
		})
	}
}

// What the host's defaults might explain is named, and not guessed.
func TestWhatTakesADryRunIsUndecided(t *testing.T) {
	const widget = "{apiVersion: example.com/v1, kind: Widget, direction: bidirectional}"
	app := configMap("app", "1", "10")
	app.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"})
	p := newPrintedSides(t, widget)
	p.see(t, app, edited(mirrorOf(app, "20"), "2", "21"))
	result, err := p.plan(t)
	require.NoError(t, err)
	require.Equal(t, 1, result.Undecided)
	require.Len(t, result.Decisions, 1)
	require.Equal(t, record.NoHistory, result.Decisions[0].Reason)
	require.Contains(t, result.Decisions[0].Message, "undecided")
	require.Contains(t, p.log.String(), "Some pairs are undecided")
	require.Contains(t, p.log.String(), "example.com/v1 Widget is taken to be namespaced and served")
	require.Contains(t, p.log.String(), "dryRun=true")
}

func TestChangesAreMadeOnlyWhereAskedFor(t *testing.T) {
	for _, asked := range []bool{false, true} {
		p := newPrintedSides(t, twoWay)
		p.options.Changes = asked
		p.see(t, configMap("app", "1", "10"), nil)
		p.see(t, configMap("other", "1", "11"), nil)
		result, err := p.plan(t)
		require.NoError(t, err)
		if !asked {
			require.Nil(t, result.Changes)
			continue
		}
		require.Len(t, result.Changes, len(result.Decisions))
		require.Equal(t, "app-x-default-x-dev", result.Changes[0][0].Name)
		require.Nil(t, result.Changes[0][0].Before)
	}
}

// Whatever is wrong with the files or missing from them is an error that says what to do.
func TestFilesThatNoPlanCanBeMadeOf(t *testing.T) {
	another := "apiVersion: tenantplane.io/v1alpha1\nkind: SyncPolicy\nmetadata: {name: another}\nspec: {resources: [" + toHost + "]}\n"
	for _, test := range []struct {
		name string
		lay  func(p *printedSides)
		want []string
	}{
		{"no tenant", func(p *printedSides) { p.host = p.host[1:] }, []string{"the host's files have no TenantCluster", "set both SYNCPASS_NAMESPACE and SYNCPASS_TENANT"}},
		{"another tenant", func(p *printedSides) { p.options.Tenant = "prod" }, []string{"have only team-dev/dev"}},
		{"two tenants", func(p *printedSides) {
			p.host = append(p.host, "{apiVersion: tenantplane.io/v1alpha1, kind: TenantCluster, metadata: {namespace: team-a, name: a}}")
		}, []string{"several TenantClusters (team-dev/dev, team-a/a)", "SYNCPASS_TENANT"}},
		{"no policy", func(p *printedSides) { p.host = p.host[:1] }, []string{`SyncPolicy "default", which TenantCluster team-dev/dev names, is not among the host's files`, "--policy"}},
		{"no policy and no tenant", func(p *printedSides) { p.host, p.options.Namespace, p.options.Tenant = nil, "n", "t" }, []string{"there is no SyncPolicy", "--policy"}},
		{"two policies", func(p *printedSides) {
			p.host, p.options.Namespace, p.options.Tenant = []string{p.policy, another}, "n", "t"
		}, []string{"several SyncPolicies, default (", "document 1) and another (", "document 2)", "--policy"}},
		{"a policy twice", func(p *printedSides) { p.host = append(p.host, p.policy) }, []string{"SyncPolicy default is in", "keep one of the two"}},
		{"a bad policy", func(p *printedSides) { p.host[1] = strings.Replace(p.policy, "bidirectional", "sideways", 1) }, []string{"host.yaml: document 2", "spec.resources[0].direction"}},
		{"a kubeconfig that is none", func(p *printedSides) { p.options.TenantKubeconfigFile = os.DevNull }, []string{"the tenant's kubeconfig from file", "it is empty"}},
		{"a kubeconfig that is not there", func(p *printedSides) { p.options.TenantKubeconfigFile = "/none" }, []string{"reading the tenant's kubeconfig", "--tenant-kubeconfig"}},
		{"a record of another tenant", func(p *printedSides) {
			p.decision = []string{strings.Replace(p.record(t), "name: dev", "name: prod", 1)}
		},
			[]string{"decision.yaml: there is no SyncDecision team-dev/dev in it", "kubectl get syncdecisions -n team-dev -o yaml"}},
		{"a record that is none", func(p *printedSides) {
			p.decision = []string{"{apiVersion: tenantplane.io/v1alpha1, kind: SyncDecision, metadata: {namespace: team-dev, name: dev}, status: {epoch: many}}"}
		}, []string{"decision.yaml: document 1: SyncDecision team-dev/dev cannot be read", "kubectl get syncdecisions"}},
		{"a record that was changed", func(p *printedSides) { p.decision = []string{strings.Replace(p.record(t), "data: ", "data: AAAA", 1)} },
			[]string{"page 0 of the history", "kubectl get syncdecisions"}},
		{"a record that lacks pages", func(p *printedSides) { p.decision = []string{strings.Replace(p.record(t), "of: 1", "of: 2", 1)} },
			[]string{"of the history", "kubectl get syncdecisions"}},
		{"a record of a newer version", func(p *printedSides) {
			p.decision = []string{strings.Replace(p.record(t), "format: 1", "format: 99", 1)}
		},
			[]string{"newer version of syncpass"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newPrintedSides(t, twoWay)
			app := configMap("app", "1", "10")
			p.see(t, app, nil)
			p.agreed(t, app, mirrorOf(app, "20"))
			test.lay(p)
			_, err := p.plan(t)
			require.Error(t, err)
			require.Equal(t, record.Invalid, OutcomeOf(err))
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "secret-token")
		})
	}
}

func TestATenantWithoutItsTenantClusterIsNamedByTheOptions(t *testing.T) {
	p := newPrintedSides(t, twoWay)
	app := configMap("app", "1", "10")
	p.see(t, app, mirrorOf(app, "20"))
	p.host = p.host[1:]
	p.options.Namespace, p.options.Tenant = "team-dev", "dev"
	parsed, err := policy.Parse([]byte(p.policy))
	require.NoError(t, err)
	p.options.Policy = parsed
	assert.Equal(t, "1 unchanged", p.decided(t), "the mirror tells the UID of its TenantCluster")
}
