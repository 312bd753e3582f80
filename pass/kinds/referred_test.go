package kinds

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/syncpass/syncpass/record"
)

var bucketKind = schema.GroupKind{Group: "example.com", Kind: "Bucket"}

func TestListedReferencesAreRenamedAndComeBack(t *testing.T) {
	longSecret := mapping.reference("Secret", "default", longName)
	for name, test := range map[string]struct {
		references    []Reference
		tenant, wants Content
	}{
		"a field": {
			[]Reference{reference("Secret", "spec", "secretName")},
			Content{"spec": Content{"secretName": "db", "other": "db"}}, Content{"spec": Content{"secretName": "db-x-default-x-dev", "other": "db"}},
		},
		"a field at the top": {
			[]Reference{reference("Secret", "secretName")}, Content{"secretName": "db"}, Content{"secretName": "db-x-default-x-dev"},
		},
		"a key with dots": {
			[]Reference{reference("Secret", "spec", "a.b/c")}, Content{"spec": Content{"a.b/c": "db"}}, Content{"spec": Content{"a.b/c": "db-x-default-x-dev"}},
		},
		"a field of every item of a list": {
			[]Reference{reference("Service", "spec", "rules", EachItem, "backend", "name")},
			Content{"spec": Content{"rules": []any{
				Content{"backend": Content{"name": "a"}}, Content{"backend": Content{"name": "b", "port": int64(80)}}, Content{"redirect": true}}}},
			Content{"spec": Content{"rules": []any{
				Content{"backend": Content{"name": "a-x-default-x-dev"}}, Content{"backend": Content{"name": "b-x-default-x-dev", "port": int64(80)}}, Content{"redirect": true}}}},
		},
		"a list of names": {
			[]Reference{reference("Secret", "spec", "secretNames", EachItem)},
			Content{"spec": Content{"secretNames": []any{"a", "", "b", int64(7), Content{"name": "c"}}}},
			Content{"spec": Content{"secretNames": []any{"a-x-default-x-dev", "", "b-x-default-x-dev", int64(7), Content{"name": "c"}}}},
		},
		"a list of lists of names": {
			[]Reference{reference("Secret", "spec", EachItem, EachItem)},
			Content{"spec": []any{[]any{"a"}, []any{}, []any{"b"}}}, Content{"spec": []any{[]any{"a-x-default-x-dev"}, []any{}, []any{"b-x-default-x-dev"}}},
		},
		"a name that is too long for a mirror": {
			[]Reference{reference("Secret", "spec", "secretName")}, Content{"spec": Content{"secretName": longName}}, Content{"spec": Content{"secretName": longSecret}},
		},
		"names of kinds with other rules for names": {
			[]Reference{reference("Service", "spec", "service"), reference("ConfigMap", "spec", "config"), {Path: []string{"spec", "bucket"}, Kind: bucketKind}},
			Content{"spec": Content{"service": "1st", "config": "1st", "bucket": "1st"}},
			Content{"spec": Content{"service": mapping.reference("Service", "default", "1st"), "config": "1st-x-default-x-dev", "bucket": "1st-x-default-x-dev"}},
		},
		"what looks like the mirror of another": {
			[]Reference{reference("Secret", "spec", "a"), reference("Secret", "spec", "b")},
			Content{"spec": Content{"a": "b-x-default-x-dev", "b": "b"}},
			Content{"spec": Content{"a": mapping.reference("Secret", "default", "b-x-default-x-dev"), "b": "b-x-default-x-dev"}},
		},
		"a place that is not there": {
			[]Reference{reference("Secret", "spec", "secretName"), reference("Secret", "spec", "rules", EachItem, "name"), reference("Secret", "a", "b", "c")},
			Content{"spec": Content{"size": int64(1)}}, Content{"spec": Content{"size": int64(1)}},
		},
		"places that hold no text": {
			[]Reference{reference("Secret", "spec", "map"), reference("Secret", "spec", "list"), reference("Secret", "spec", "number"), reference("Secret", "spec", "null"),
				reference("Secret", "spec", "empty"), reference("Secret", "spec", "true"), reference("Secret", "spec", "text", "deeper"), reference("Secret", "spec", "map", EachItem)},
			Content{"spec": Content{"map": Content{"name": "db"}, "list": []any{"db"}, "number": int64(1), "null": nil, "empty": "", "true": true, "text": "db"}},
			Content{"spec": Content{"map": Content{"name": "db"}, "list": []any{"db"}, "number": int64(1), "null": nil, "empty": "", "true": true, "text": "db"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			kind, tenant := listing(runtime.DeepCopyJSON(test.tenant), test.references...)
			before := tenant.DeepCopy()
			mirror := mapping.Project(kind, tenant, nil, KeepForeign)
			require.Equal(t, test.wants, bare(mirror))
			host := stored(mirror)
			require.Equal(t, test.wants, bare(mapping.Project(kind, tenant, host, KeepForeign)), "a second projection is the same")
			require.Equal(t, test.tenant, bare(mapping.Reflect(kind, host, tenant)), "and the way back changes nothing in the tenant")
			require.Equal(t, before, tenant)
			require.False(t, mapping.Unrenamed(kind, tenant, host))
		})
	}
}

// On the way back only what is known to be a mirror of the same namespace is taken apart.
func TestWhatTheHostReferToComesBack(t *testing.T) {
	secret := reference("Secret", "spec", "secretName")
	for host, want := range map[string]string{
		"db-x-default-x-dev":                             "db",
		"other-x-default-x-dev":                          "other",
		mapping.reference("Secret", "default", longName): mapping.reference("Secret", "default", longName), // nobody knows whose
		"db-x-team-a-x-dev":                              "db-x-team-a-x-dev",
		"db-x-default-x-dev-2":                           "db-x-default-x-dev-2",
		"-x-default-x-dev":                               "-x-default-x-dev",
		"a-x-b-x-default-x-dev":                          "a-x-b-x-default-x-dev",
		"host-secret":                                    "host-secret",
		"":                                               "",
		"App-x-default-x-dev":                            "App-x-default-x-dev",
		"../db-x-default-x-dev":                          "../db-x-default-x-dev",
		"db-x-default-x-dev\x00":                         "db-x-default-x-dev\x00",
	} {
		kind, tenant := listing(Content{"spec": Content{"secretName": "db"}}, secret)
		mirror := stored(mapping.Project(kind, tenant, nil, KeepNone))
		child(mirror.Object, "spec")["secretName"] = host
		back := mapping.Reflect(kind, mirror, tenant)
		require.Equal(t, want, child(back.Object, "spec")["secretName"], "%q", host)
	}
	kind, tenant := listing(Content{"spec": Content{"secretName": longName}}, secret)
	mirror := stored(mapping.Project(kind, tenant, nil, KeepNone))
	child(mirror.Object, "spec")["size"] = int64(2)
	back := mapping.Reflect(kind, mirror, tenant)
	require.Equal(t, Content{"secretName": longName, "size": int64(2)}, back.Object["spec"], "a hashed name that the tenant has already is known from there")
}

// hostile draws what a tenant might write in a name's place to reach an object of the host.
func hostile(t *rapid.T) any {
	return rapid.OneOf(
		rapid.SampledFrom([]any{
			"host-secret", "app-x-default-x-dev", "app-x-default-x-other", "db-x-kube-system-x-dev", "../host-secret", "host-secret/", "team-dev/host-secret", "HOST-SECRET",
			"host-secret\x00", " host-secret", "host-secret\n", "-x-default-x-dev", "x-x-x-x", strings.Repeat("host-secret-", 40), "ｈost-secret", "\xffhost", ".", "..", "*", "{{.name}}",
		}),
		rapid.StringN(0, 30, 120).AsAny(), rapid.Custom(func(t *rapid.T) any { return drawJSON(t, 2) }),
	).Draw(t, "value")
}

// Whatever a tenant writes at a listed place, what the host gets there is no text, empty, or the name of a mirror of the
// tenant's own namespace, in the form that only this name has.
func TestNoHostNameGetsThroughAListedPlace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind, tenant := listing(Content{
			"spec": Content{"secretName": hostile(t), "names": []any{hostile(t), hostile(t)}, "rules": []any{Content{"name": hostile(t)}, hostile(t)}},
		}, reference("Secret", "spec", "secretName"), reference("Secret", "spec", "names", EachItem), reference("Secret", "spec", "rules", EachItem, "name"))
		written := map[string]bool{}
		collect := func(object *unstructured.Unstructured, see func(name string)) {
			listed(kind, object)(func(entry Content, field string, _ schema.GroupKind) {
				if name, ok := entry[field].(string); ok && name != "" {
					see(name)
				}
			})
		}
		collect(tenant, func(name string) { written[mapping.reference("Secret", "default", name)] = true })
		mirror := mapping.Project(kind, tenant, nil, KeepNone)
		collect(mirror, func(name string) {
			require.True(t, written[name], "%q is nothing that a name of the tenant's becomes", name)
			require.Empty(t, secrets.ValidName(name))
			require.Regexp(t, `-x-default-x-dev$|-[a-z2-7]{16}$`, name)
		})
		require.Equal(t, Difference(ContentOf(kind, record.Host, mirror), ContentOf(kind, record.Host, mapping.Project(kind, tenant, stored(mirror), KeepNone))), []Path(nil))
		require.True(t, Equal(bare(tenant), bare(mapping.Reflect(kind, stored(mirror), tenant))), "and it comes back as it was")
	})
}

// What a built-in kind renames by itself is not renamed twice where the policy lists it as well, and what it does not
// know of is renamed beside it.
func TestListedReferencesOfBuiltInKinds(t *testing.T) {
	t.Run("Ingress", func(t *testing.T) {
		kind := With(schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}, Rules{References: []Reference{
			reference("Secret", "spec", "tls", EachItem, "secretName"), reference("Service", "spec", "defaultBackend", "service", "name"), reference("ConfigMap", "spec", "extra"),
		}})
		tenant := object("networking.k8s.io/v1", "Ingress", Content{"spec": Content{
			"tls": []any{Content{"secretName": "cert"}}, "defaultBackend": serviceBackend("web"), "extra": "cfg",
		}})
		mirror := mapping.Project(kind, tenant, nil, KeepNone)
		require.Equal(t, Content{
			"tls": []any{Content{"secretName": "cert-x-default-x-dev"}}, "defaultBackend": serviceBackend("web-x-default-x-dev"), "extra": "cfg-x-default-x-dev",
		}, mirror.Object["spec"])
		require.Equal(t, tenant.Object["spec"], mapping.Reflect(kind, stored(mirror), tenant).Object["spec"])
	})
	t.Run("PersistentVolumeClaim", func(t *testing.T) {
		kind := With(schema.GroupKind{Kind: "PersistentVolumeClaim"}, Rules{References: []Reference{
			{Path: []string{"spec", "dataSource", "name"}, Kind: schema.GroupKind{Group: "snapshot.storage.k8s.io", Kind: "VolumeSnapshot"}},
		}})
		tenant := object("v1", "PersistentVolumeClaim", Content{"spec": Content{
			"dataSource": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "snap"},
		}})
		mirror := mapping.Project(kind, tenant, nil, KeepNone)
		require.Equal(t, "snap-x-default-x-dev", child(child(mirror.Object, "spec"), "dataSource")["name"])
		require.Equal(t, bare(mirror), bare(mapping.Project(kind, tenant, stored(mirror), KeepNone)))
	})
	t.Run("Pod", func(t *testing.T) {
		kind := With(schema.GroupKind{Kind: "Pod"}, Rules{References: []Reference{
			{Path: []string{"spec", "volumes", EachItem, "csi", "volumeAttributes", "secretProviderClass"}, Kind: schema.GroupKind{Group: "secrets-store.csi.x-k8s.io", Kind: "SecretProviderClass"}},
			reference("Secret", "spec", "volumes", EachItem, "secret", "secretName"), reference("Service", "spec", "subdomain"),
			reference("ConfigMap", "spec", "volumes", EachItem, "projected", "sources", EachItem, "configMap", "name"),
			reference("Secret", "spec", "containers", EachItem, "env", EachItem, "value"), reference("Secret", "spec", "ephemeralContainers", EachItem, "env", EachItem, "value"),
		}})
		tenant := object("v1", "Pod", Content{"spec": Content{
			"subdomain":  "web",
			"containers": []any{Content{"name": "c", "image": "a", "env": []any{Content{"name": "SECRET", "value": "db"}}}},
			"volumes": []any{
				Content{"name": "a", "csi": Content{"driver": "secrets-store.csi.k8s.io", "volumeAttributes": Content{"secretProviderClass": "vault"}}},
				Content{"name": "b", "secret": Content{"secretName": "db"}},
				Content{"name": "c", "projected": Content{"sources": []any{
					Content{"serviceAccountToken": Content{"path": "token"}}, Content{"configMap": Content{"name": RootCA}}, Content{"configMap": Content{"name": "cfg"}}}}},
			},
		}})
		m := mapping
		m.Workloads.APIHost, m.Workloads.APIPort = "10.0.0.1", "443" // variables before the tenant's own
		mirror := m.Project(kind, tenant, nil, KeepNone)
		spec := child(mirror.Object, "spec")
		require.Equal(t, "web-x-default-x-dev", spec["subdomain"])
		volumes := entries(spec["volumes"])
		require.Equal(t, "vault-x-default-x-dev", child(child(volumes[0], "csi"), "volumeAttributes")["secretProviderClass"])
		require.Equal(t, "db-x-default-x-dev", child(volumes[1], "secret")["secretName"])
		sources := entries(child(volumes[2], "projected")["sources"])
		require.Equal(t, m.tokenSecret(tenant), child(sources[1], "secret")["name"], "the root CA is the tenant's, from the Secret with the token")
		require.Equal(t, "cfg-x-default-x-dev", child(sources[2], "configMap")["name"])
		env := entries(entries(spec["containers"])[0]["env"])
		require.Greater(t, len(env), 1)
		require.Equal(t, Content{"name": "SECRET", "value": "db-x-default-x-dev"}, env[len(env)-1])

		host := stored(mirror)
		require.Equal(t, bare(host), bare(m.Project(kind, tenant, host, KeepForeign)), "an update keeps what is there")
		child(tenant.Object, "spec")["ephemeralContainers"] = []any{Content{"name": "debug", "env": []any{Content{"name": "SECRET", "value": "host-secret"}}}}
		parts := kind.(Partial).Parts(m, tenant, host, true)
		require.Len(t, parts, 1)
		debug := entries(child(parts[0].Object.Object, "spec")["ephemeralContainers"])[0]
		own := entries(debug["env"])
		require.Equal(t, Content{"name": "SECRET", "value": "host-secret-x-default-x-dev"}, own[len(own)-1])
	})
}

func TestAMirrorFromBeforeAReferenceWasListedIsFound(t *testing.T) {
	secret, names := reference("Secret", "spec", "secretName"), reference("Secret", "spec", "names", EachItem)
	for name, test := range map[string]struct {
		tenant, host Content
		want         bool
	}{
		"it has the tenant's name":              {Content{"secretName": "db"}, Content{"secretName": "db"}, true},
		"one of several names is the tenant's":  {Content{"names": []any{"a", "b"}}, Content{"names": []any{"a-x-default-x-dev", "b"}}, true},
		"the name is renamed":                   {Content{"secretName": "db"}, Content{"secretName": "db-x-default-x-dev"}, false},
		"somebody on the host names another":    {Content{"secretName": "db"}, Content{"secretName": "host-secret"}, false},
		"a tenant's name looks like a mirror's": {Content{"secretName": "b", "names": []any{"b-x-default-x-dev"}}, Content{"secretName": "b-x-default-x-dev", "names": []any{}}, false},
		"there is no name":                      {Content{"secretName": ""}, Content{"secretName": ""}, false},
		"there is no text":                      {Content{"secretName": int64(1)}, Content{"secretName": int64(1)}, false},
		"the content is gone on the host":       {Content{"secretName": "db"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			kind, tenant := listing(Content{"spec": test.tenant}, secret, names)
			_, host := listing(Content{"spec": test.host})
			require.Equal(t, test.want, mapping.Unrenamed(kind, tenant, host))
			require.False(t, mapping.Unrenamed(widgets, tenant, host), "no policy, no places")
		})
	}
}

func TestWhatObjectsReferTo(t *testing.T) {
	secret := func(name string, optional bool) Referral {
		return Referral{Kind: schema.GroupKind{Kind: "Secret"}, Name: name, Optional: optional}
	}
	config := func(name string, optional bool) Referral {
		return Referral{Kind: schema.GroupKind{Kind: "ConfigMap"}, Name: name, Optional: optional}
	}
	claim := func(name string) Referral {
		return Referral{Kind: schema.GroupKind{Kind: "PersistentVolumeClaim"}, Name: name}
	}
	service := Referral{Kind: schema.GroupKind{Kind: "Service"}, Name: "web"}
	for name, test := range map[string]struct {
		kind   schema.GroupKind
		rules  Rules
		object *unstructured.Unstructured
		want   []Referral
	}{
		"a Pod's, each once": {
			kind: schema.GroupKind{Kind: "Pod"},
			object: object("v1", "Pod", Content{"spec": Content{
				"subdomain": "web", "imagePullSecrets": []any{Content{"name": "pull"}},
				"containers": []any{Content{
					"envFrom": []any{Content{"configMapRef": Content{"name": "env"}}, Content{"secretRef": Content{"name": "env", "optional": true}}},
					"env": []any{Content{"name": "A", "valueFrom": Content{"configMapKeyRef": Content{"name": "env", "key": "a"}}},
						Content{"name": "B", "valueFrom": Content{"secretKeyRef": Content{"name": "db", "key": "b", "optional": false}}}},
				}},
				"volumes": []any{
					Content{"name": "a", "configMap": Content{"name": "files", "optional": true}}, Content{"name": "b", "persistentVolumeClaim": Content{"claimName": "data"}},
					Content{"name": "c", "ephemeral": Content{"volumeClaimTemplate": Content{}}},
					Content{"name": "d", "projected": Content{"sources": []any{
						Content{"configMap": Content{"name": RootCA}}, Content{"secret": Content{"name": "tls"}}, Content{"serviceAccountToken": Content{}}}}},
				},
			}}),
			want: []Referral{service, secret("pull", false), config("env", false), secret("env", true), secret("db", false), config("files", true), claim("data"), secret("tls", false), claim("app-c")},
		},
		"an Ingress'": {
			kind: schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"},
			object: object("networking.k8s.io/v1", "Ingress", Content{"spec": Content{
				"defaultBackend": serviceBackend("web"), "tls": []any{Content{"secretName": "cert"}, Content{}},
				"rules": []any{ingressRule("a", serviceBackend("web"), Content{"resource": Content{"apiGroup": "example.com", "kind": "Bucket", "name": "static"}})},
			}}),
			want: []Referral{service, {Kind: bucketKind, Name: "static"}, secret("cert", false)},
		},
		"a claim's, but for what is in another namespace": {
			kind: schema.GroupKind{Kind: "PersistentVolumeClaim"},
			object: object("v1", "PersistentVolumeClaim", Content{"spec": Content{
				"dataSource":    Content{"kind": "PersistentVolumeClaim", "name": "old"},
				"dataSourceRef": Content{"kind": "PersistentVolumeClaim", "name": "theirs", "namespace": "team-a"},
			}}),
			want: []Referral{claim("old")},
		},
		"what the policy lists": {
			kind:   bucketKind,
			rules:  Rules{References: []Reference{reference("Secret", "spec", "names", EachItem), reference("ConfigMap", "spec", "ref", "name")}},
			object: object("example.com/v1", "Bucket", Content{"spec": Content{"names": []any{"b", "a", "b", int64(1)}, "ref": Content{"name": "cfg", "optional": true}}}),
			want:   []Referral{secret("b", false), secret("a", false), config("cfg", true)},
		},
		"none that anybody knows of": {kind: bucketKind, object: object("example.com/v1", "Bucket", Content{"spec": Content{"secretName": "db"}})},
	} {
		t.Run(name, func(t *testing.T) {
			before := test.object.DeepCopy()
			require.Equal(t, test.want, Referred(With(test.kind, test.rules), test.object))
			require.Equal(t, before, test.object)
		})
	}
}

// No shape of an object, and no path, makes following it fail or changes what it is read from.
func TestPathsThroughAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		element := rapid.SampledFrom([]string{EachItem, "spec", "data", "name", "ports", "selector", "type"})
		var references []Reference
		for range rapid.IntRange(1, 4).Draw(t, "references") {
			path := rapid.SliceOfN(element, 0, 4).Draw(t, "path")
			references = append(references, reference("Secret", append([]string{rapid.SampledFrom([]string{"spec", "data", "name"}).Draw(t, "root")}, path...)...))
		}
		rules := Rules{References: references}
		gvk := rapid.SampledFrom(append(projected, schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, schema.GroupVersionKind{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"})).Draw(t, "kind")
		kind := With(gvk.GroupKind(), rules)
		tenant := drawObject(t, gvk.GroupVersion().String(), gvk.Kind)
		host := stored(mapping.Project(kind, drawObject(t, gvk.GroupVersion().String(), gvk.Kind), nil, KeepNone))
		before := [2]*unstructured.Unstructured{tenant.DeepCopy(), host.DeepCopy()}
		mapping.Project(kind, tenant, nil, KeepNone)
		mapping.Project(kind, tenant, host, KeepForeign)
		mapping.Reflect(kind, host, tenant)
		mapping.Unrenamed(kind, tenant, host)
		Referred(kind, tenant)
		require.Equal(t, before, [2]*unstructured.Unstructured{tenant, host})
	})
}
