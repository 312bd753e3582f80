package kinds

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/syncpass/syncpass/record"
)

func claimSpec(size string, more Content) Content {
	spec := Content{"accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Filesystem", "resources": Content{"requests": Content{"storage": size}}}
	for field, value := range more {
		spec[field] = value
	}
	return spec
}

func claimCrossing(tenant, created, host Content) crossing {
	return crossing{"v1", "PersistentVolumeClaim", Content{"spec": tenant}, Content{"spec": created}, Content{"spec": host}}
}

var claimCrossings = map[string]crossing{
	"no class, which the host chooses": claimCrossing(claimSpec("1Gi", nil), claimSpec("1Gi", nil), claimSpec("1Gi", Content{"storageClassName": "fast", "volumeName": "pv-1"})),
	"no class, chosen on both sides":   claimCrossing(claimSpec("1Gi", nil), claimSpec("1Gi", nil), claimSpec("1Gi", nil)),
	"the class of no name":             claimCrossing(claimSpec("1Gi", Content{"storageClassName": ""}), claimSpec("1Gi", Content{"storageClassName": ""}), claimSpec("1Gi", Content{"storageClassName": "", "volumeName": "pv-1"})),
	"a class":                          claimCrossing(claimSpec("1Gi", Content{"storageClassName": "slow"}), claimSpec("1Gi", Content{"storageClassName": "slow"}), claimSpec("1Gi", Content{"storageClassName": "slow", "volumeName": "pv-1"})),
	"a class that a webhook of the host replaced, and a limit that it set": claimCrossing(claimSpec("1Gi", Content{"storageClassName": "slow"}), claimSpec("1Gi", Content{"storageClassName": "slow"}),
		Content{"accessModes": []any{"ReadWriteOnce"}, "volumeMode": "Filesystem", "storageClassName": "host-slow", "resources": Content{"requests": Content{"storage": "1Gi"}, "limits": Content{"storage": "9Gi"}}}),
	"a size in other words":     claimCrossing(claimSpec("1024Mi", nil), claimSpec("1024Mi", nil), claimSpec("1Gi", nil)),
	"a size that the host grew": claimCrossing(claimSpec("5Gi", nil), claimSpec("5Gi", nil), claimSpec("8Gi", nil)),
	"a selector":                claimCrossing(claimSpec("1Gi", Content{"selector": app("db")}), claimSpec("1Gi", Content{"selector": app("db")}), claimSpec("1Gi", Content{"selector": app("db")})),
	"a clone": claimCrossing(
		claimSpec("1Gi", Content{"dataSource": Content{"kind": "PersistentVolumeClaim", "name": "data"}, "dataSourceRef": Content{"kind": "PersistentVolumeClaim", "name": "data"}}),
		claimSpec("1Gi", Content{"dataSource": Content{"kind": "PersistentVolumeClaim", "name": "data-x-default-x-dev"}, "dataSourceRef": Content{"kind": "PersistentVolumeClaim", "name": "data-x-default-x-dev"}}),
		claimSpec("1Gi", Content{"dataSource": Content{"kind": "PersistentVolumeClaim", "name": "data-x-default-x-dev"}, "dataSourceRef": Content{"kind": "PersistentVolumeClaim", "name": "data-x-default-x-dev"}})),
	"a snapshot of its own namespace": claimCrossing(
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s", "namespace": "default"}}),
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s-x-default-x-dev"}}),
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s-x-default-x-dev"}})),
	"a snapshot of another namespace": claimCrossing(
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": "s", "namespace": "other"}}),
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": nobodysSnapshot}}),
		claimSpec("1Gi", Content{"dataSourceRef": Content{"apiGroup": "snapshot.storage.k8s.io", "kind": "VolumeSnapshot", "name": nobodysSnapshot}})),
	"a class of attributes":                     claimCrossing(claimSpec("1Gi", Content{"volumeAttributesClassName": "gold"}), claimSpec("1Gi", Content{"volumeAttributesClassName": "gold"}), claimSpec("1Gi", Content{"volumeAttributesClassName": "gold"})),
	"a class of attributes that the host chose": claimCrossing(claimSpec("1Gi", nil), claimSpec("1Gi", nil), claimSpec("1Gi", Content{"volumeAttributesClassName": "gold"})),
}

// nobodysSnapshot is a name that the mirror of no object bears, since no object's name has a slash.
const nobodysSnapshot = "other-s-x-default-x-dev-npfysrxuyigf5kqx"

func claim(spec Content) *unstructured.Unstructured {
	return object("v1", "PersistentVolumeClaim", Content{"spec": spec})
}

func TestTheVolumeOfATenantsClaimNeverCrosses(t *testing.T) {
	tenant := claim(claimSpec("1Gi", Content{"volumeName": "tenants-pv"}))
	for _, key := range []string{"pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller", "volume.kubernetes.io/selected-node"} {
		setAnnotation(tenant, key, "yes")
	}
	kind := kindOf(tenant)
	mirror := mapping.Project(kind, tenant, nil, KeepNone)
	require.NotContains(t, mirror.Object["spec"], "volumeName")
	require.Len(t, mirror.GetAnnotations(), 3, "the marks alone")

	host := stored(mirror)
	child(host.Object, "spec")["volumeName"] = "pv-1"
	setAnnotation(host, "pv.kubernetes.io/bind-completed", "yes")
	want := mapping.Project(kind, tenant, host, KeepForeign)
	require.Equal(t, "pv-1", child(want.Object, "spec")["volumeName"])
	require.Equal(t, "yes", want.GetAnnotations()["pv.kubernetes.io/bind-completed"])
	require.Equal(t, "tenants-pv", child(mapping.Reflect(kind, host, tenant).Object, "spec")["volumeName"])
	require.Equal(t, ContentOf(kind, record.Host, mirror), ContentOf(kind, record.Host, host), "binding is no change")
}

func TestAClaimGrowsAndNeverShrinks(t *testing.T) {
	for _, test := range []struct{ name, asked, has, want string }{
		{"larger", "2Gi", "1Gi", "2Gi"},
		{"larger, in smaller units", "2048Mi", "1Gi", "2048Mi"},
		{"equal, in other words", "1024Mi", "1Gi", "1Gi"},
		{"smaller", "1Gi", "2Gi", "2Gi"},
		{"a number that is no size", "much", "2Gi", "much"},
		{"the host's is no size", "1Gi", "much", "1Gi"},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := claim(claimSpec(test.asked, nil))
			kind := kindOf(tenant)
			host := stored(mapping.Project(kind, claim(claimSpec(test.has, nil)), nil, KeepNone))
			want := mapping.Project(kind, tenant, host, KeepForeign)
			require.Equal(t, test.want, requested(child(want.Object, "spec")))
			require.Empty(t, kind.Immutable(host.Object, want.Object), "a claim is never replaced")
			require.Equal(t, tenant.Object["spec"], mapping.Reflect(kind, host, tenant).Object["spec"])
		})
	}
}

func TestAttributesOfAClaimChangeInPlace(t *testing.T) {
	tenant := claim(claimSpec("1Gi", Content{"volumeAttributesClassName": "gold"}))
	kind := kindOf(tenant)
	host := stored(mapping.Project(kind, claim(claimSpec("1Gi", Content{"volumeAttributesClassName": "silver"})), nil, KeepNone))
	require.Equal(t, "gold", child(mapping.Project(kind, tenant, host, KeepForeign).Object, "spec")["volumeAttributesClassName"])
	require.Equal(t, "silver", child(mapping.Reflect(kind, host, tenant).Object, "spec")["volumeAttributesClassName"])
}

// A claim that was deleted and made again takes up its volume where that is what it asks for; where it is not, the host
// says so, and the data stays.
func TestAClaimThatWasMadeAgain(t *testing.T) {
	old := claim(claimSpec("2Gi", Content{"storageClassName": "slow"}))
	kind := kindOf(old)
	host := stored(mapping.Project(kind, old, nil, KeepNone))
	child(host.Object, "spec")["volumeName"] = "pv-1"
	for _, test := range []struct {
		name       string
		asked      Content
		difference []Path
	}{
		{"the same", claimSpec("2Gi", Content{"storageClassName": "slow"}), nil},
		{"no class", claimSpec("2Gi", nil), nil},
		{"less", claimSpec("1Gi", Content{"storageClassName": "slow"}), nil},
		{"another class", claimSpec("2Gi", Content{"storageClassName": "fast"}), []Path{{"spec", "storageClassName"}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			again := claim(test.asked)
			again.SetUID("t-app-2")
			want := mapping.Project(kind, again, host, KeepForeign)
			require.Equal(t, test.difference, Difference(ContentOf(kind, record.Host, host), ContentOf(kind, record.Host, want)))
			require.Equal(t, "pv-1", child(want.Object, "spec")["volumeName"])
			require.Empty(t, kind.Immutable(host.Object, want.Object), "a claim is never replaced")
		})
	}
}

func TestTheStateOfAClaimIsReported(t *testing.T) {
	condition := func(kind, reason string) Content { return Content{"type": kind, "status": "True", "reason": reason} }
	bound := Content{
		"phase": "Bound", "capacity": Content{"storage": "1Gi"}, "accessModes": []any{"ReadWriteOnce"},
		"conditions": []any{condition("Resizing", "host"), condition("Unused", "host")},
	}
	pending := Content{"phase": "Pending"}
	// What the API servers of a tenant with a volume controller, and with one that watches who uses a claim, keep.
	binder := entryOf("kube-controller-manager", "status", `{"f:status":{"f:phase":{}}}`)
	protector := entryOf("kube-controller-manager", "status", `{"f:status":{"f:conditions":{"k:{\"type\":\"Unused\"}":{".":{},"f:reason":{},"f:type":{}}}}}`)
	ours := entryOf(FieldManager, "status", `{"f:status":{"f:phase":{},"f:conditions":{"k:{\"type\":\"Unused\"}":{".":{}}}}}`)
	for _, test := range []struct {
		name               string
		host, tenant, want Content
		managers           []metav1.ManagedFieldsEntry
	}{
		{"a claim that was bound", bound, pending, bound, nil},
		{"reported already", bound, bound, nil, []metav1.ManagedFieldsEntry{ours}},
		{"nothing to report", nil, pending, nil, nil},
		{"lost on the host", Content{"phase": "Lost"}, bound, Content{"phase": "Lost"}, []metav1.ManagedFieldsEntry{ours}},
		{"a volume controller of the tenant's put it back", bound, pending, Content{"phase": "Pending", "conditions": bound["conditions"]}, []metav1.ManagedFieldsEntry{binder}},
		{"and knows of the conditions", bound, Content{"phase": "Pending", "conditions": bound["conditions"]}, nil, []metav1.ManagedFieldsEntry{binder, ours}},
		{"the tenant's own condition stays where it is", bound,
			Content{"phase": "Bound", "conditions": []any{condition("Unused", "tenant"), condition("Gone", "host")}},
			Content{"phase": "Bound", "capacity": bound["capacity"], "accessModes": bound["accessModes"], "conditions": []any{condition("Unused", "tenant"), condition("Resizing", "host")}},
			[]metav1.ManagedFieldsEntry{ours, protector}},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := object("v1", "PersistentVolumeClaim", Content{"status": test.tenant})
			tenant.SetManagedFields(test.managers)
			host := object("v1", "PersistentVolumeClaim", Content{"status": test.host})
			kind := kindOf(tenant).(Reports)
			got := kind.ReflectStatus(mapping, host, tenant)
			require.Equal(t, test.want, got)
			if got != nil {
				tenant.Object["status"] = got
				require.Nil(t, kind.ReflectStatus(mapping, host, tenant), "once reported, there is nothing more to report")
			}
		})
	}
}
