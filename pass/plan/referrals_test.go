package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

// kindOf is a kind of the policy with these objects of the tenant in default.
func kindOf(gvk schema.GroupVersionKind, names ...string) plan.KindSnapshot {
	w := newWorld(policy.ToHost, policy.Manual)
	w.group = gvk
	for _, name := range names {
		w.see(w.object(name), nil)
	}
	return w.input().Snapshot.Kinds[0]
}

var (
	podKind  = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
	secrets  = schema.GroupVersionKind{Version: "v1", Kind: "Secret"}
	claims   = schema.GroupVersionKind{Version: "v1", Kind: "PersistentVolumeClaim"}
	ingress  = schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}
	services = schema.GroupVersionKind{Version: "v1", Kind: "Service"}
)

// spec replaces the spec of an object.
func spec(content map[string]any) edit {
	return func(o *unstructured.Unstructured) { o.Object["spec"] = content }
}

// mounting is a Pod with these volumes.
func mounting(volumes ...any) edit {
	return spec(map[string]any{"containers": []any{map[string]any{"name": "c"}}, "volumes": volumes})
}

func secretVolume(name string) map[string]any {
	return map[string]any{"name": "s-" + name, "secret": map[string]any{"secretName": name}}
}

func optional(name string) map[string]any {
	return map[string]any{"name": "o-" + name, "secret": map[string]any{"secretName": name, "optional": true}}
}

func configVolume(name string) map[string]any {
	return map[string]any{"name": "c-" + name, "configMap": map[string]any{"name": name}}
}

func TestAMessageNamesWhatIsMissingOnTheHost(t *testing.T) {
	const start = "has no mirror on the host yet"
	leftOut := kindOf(secrets, "db")
	selecting(&leftOut.Resource)
	unavailable := kindOf(secrets)
	unavailable.Unavailable = "listing it on the tenant failed"
	malformed := kindOf(secrets)
	malformed.Malformed = map[types.NamespacedName]string{{Namespace: "default", Name: "db"}: "metadata.labels is no map of strings"}
	retired := kindOf(secrets)
	retired.Retired = true
	token := kindOf(secrets, "db")
	token.Tenant[0].Object["type"] = "kubernetes.io/service-account-token"
	elsewhere := kindOf(secrets, "db")
	elsewhere.Tenant[0].SetNamespace("team-a")

	for _, test := range []struct {
		name string
		gvk  schema.GroupVersionKind
		says func(*policy.Resource)
		of   edit
		more []plan.KindSnapshot
		want string
	}{
		{"nothing where all is there", podKind, nil, mounting(secretVolume("db"), configVolume("cfg")), []plan.KindSnapshot{kindOf(secrets, "db"), kindOf(configMaps, "cfg")}, ""},
		{"a kind that is not in the policy", podKind, nil, mounting(secretVolume("db")), nil, "; it refers to Secret default/db, which the policy does not carry"},
		{"a kind that left the policy", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{retired}, "; it refers to Secret default/db, which the policy does not carry"},
		{"an object that the policy leaves out", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{leftOut}, "; it refers to Secret default/db, which the policy does not carry"},
		{"an object that is not there", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{kindOf(secrets, "db-2")}, "; it refers to Secret default/db, which the tenant does not have"},
		{"an object of another namespace", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{elsewhere}, "; it refers to Secret default/db, which the tenant does not have"},
		{"an object that never crosses", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{token}, "; it refers to Secret default/db, which no pass carries"},
		{"an optional object may be missing", podKind, nil, mounting(optional("db")), []plan.KindSnapshot{kindOf(secrets)}, ""},
		{"an optional object of a kind that is not in the policy is missed without a word otherwise", podKind, nil, mounting(optional("db")), nil,
			"; it refers to Secret default/db, which the policy does not carry"},
		{"nobody knows of a kind that could not be read", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{unavailable}, ""},
		{"a malformed object is one that is there", podKind, nil, mounting(secretVolume("db")), []plan.KindSnapshot{malformed}, ""},
		{"several, each once, in the order of the fields", podKind, nil, mounting(configVolume("b"), secretVolume("a"), configVolume("b"),
			map[string]any{"name": "d", "persistentVolumeClaim": map[string]any{"claimName": "data"}}), []plan.KindSnapshot{kindOf(claims)},
			"; it refers to ConfigMap default/b, which the policy does not carry; it refers to Secret default/a, which the policy does not carry" +
				"; it refers to PersistentVolumeClaim default/data, which the tenant does not have"},
		{"no more than five", podKind, nil, mounting(secretVolume("a"), secretVolume("b"), secretVolume("c"), secretVolume("d"), secretVolume("e"), secretVolume("f"), secretVolume("g")), nil,
			"; it refers to Secret default/a, which the policy does not carry; it refers to Secret default/b, which the policy does not carry" +
				"; it refers to Secret default/c, which the policy does not carry; it refers to Secret default/d, which the policy does not carry" +
				"; it refers to Secret default/e, which the policy does not carry; and to 2 more that are missing"},
		{"an Ingress", ingress, nil, spec(map[string]any{
			"defaultBackend": map[string]any{"service": map[string]any{"name": "web"}}, "tls": []any{map[string]any{"secretName": "cert"}}}), []plan.KindSnapshot{kindOf(services)},
			"; it refers to Service default/web, which the tenant does not have; it refers to Secret default/cert, which the policy does not carry"},
		{"a reference that the policy lists, to a kind in a group", widgets, func(r *policy.Resource) {
			r.References = []policy.Reference{{Path: "spec.bucket", Kind: "Bucket", APIVersion: "storage.example.com/v1"}}
		}, spec(map[string]any{"bucket": "logs"}), nil, "; it refers to Bucket.storage.example.com default/logs, which the policy does not carry"},
		{"a name that no terminal should see", widgets, referring, naming("a\x1b[31m\n"), nil, `; it refers to Secret "default/a\x1b[31m\n", which the policy does not carry`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(policy.ToHost, policy.Manual)
			w.group, w.says = test.gvk, test.says
			w.see(w.object("app", test.of), nil)
			in := w.input()
			in.Snapshot.Kinds = append(in.Snapshot.Kinds, test.more...)
			for _, step := range plan.Compute(in).Steps {
				if step.Key == w.key("app") {
					require.Equal(t, record.Create, step.Action)
					require.Equal(t, start+test.want, step.Message)
				}
			}
		})
	}
}

// What is said comes with what is written: not with a skip, not with what flows to the tenant.
func TestOnlyWhatIsWrittenToTheHostNamesWhatIsMissing(t *testing.T) {
	const missing = "; it refers to Secret default/db, which the policy does not carry"
	w := widgetWorld(policy.Bidirectional, policy.Manual)
	tenant := w.object("app", naming("db"))
	host := w.mirror(tenant, naming("db-x-default-x-dev"))
	w.agreed(tenant, host)
	for _, test := range []struct {
		name         string
		tenant, host *unstructured.Unstructured
		says         string
	}{
		{"a push", w.edited(tenant, a2), host, "changed in the tenant" + missing},
		{"a mirror that comes back", tenant, nil, "the mirror was deleted on the host and comes back from the tenant" + missing},
		{"a pull", tenant, w.edited(host, a2), "changed on the host"},
		{"a conflict", w.edited(tenant, a2), w.edited(host, a3), "both sides changed since they last agreed, and neither is touched; make them equal, and it clears itself; " +
			"or say which to keep, by `runner resolve` or by tenantplane.io/resolve=tenant or =host on the mirror"},
		{"a deletion", nil, host, "deleted in the tenant"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w.tenants, w.hosts = nil, nil
			w.see(test.tenant, test.host)
			require.Equal(t, test.says, one(t, w.compute()).Message)
		})
	}
	sealed := newWorld(policy.ToHost, policy.Manual)
	sealed.says = referring
	before := sealed.object("app", immutable, naming("db"))
	mirror := sealed.mirror(before, naming("db-x-default-x-dev"))
	sealed.agreed(before, mirror)
	sealed.see(sealed.edited(before, a2), mirror)
	replaced := one(t, sealed.compute())
	require.True(t, replaced.Replace)
	require.Equal(t, 1, strings.Count(replaced.Message, missing), "%s", replaced.Message)
}
