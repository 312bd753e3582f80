package kinds

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

var (
	configMaps = For(schema.GroupKind{Kind: "ConfigMap"})
	services   = For(schema.GroupKind{Kind: "Service"})
	secrets    = For(schema.GroupKind{Kind: "Secret"})
	widgets    = For(schema.GroupKind{Group: "example.com", Kind: "Widget"})

	cronJobs     = For(schema.GroupKind{Group: "batch", Kind: "CronJob"})
	jobs         = For(schema.GroupKind{Group: "batch", Kind: "Job"})
	statefulSets = For(schema.GroupKind{Group: "apps", Kind: "StatefulSet"})
	deployments  = For(schema.GroupKind{Group: "apps", Kind: "Deployment"})

	allKinds = []Kind{
		configMaps, services, secrets, widgets, cronJobs, jobs, statefulSets, deployments, For(schema.GroupKind{Kind: "Pod"}), For(schema.GroupKind{Kind: "PersistentVolumeClaim"}),
		For(schema.GroupKind{Kind: "ServiceAccount"}), For(schema.GroupKind{Group: "networking.k8s.io", Kind: "Ingress"}),
		For(schema.GroupKind{Group: "networking.k8s.io", Kind: "NetworkPolicy"}), For(schema.GroupKind{Group: "policy", Kind: "PodDisruptionBudget"}),
		For(schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}), For(schema.GroupKind{Group: "discovery.k8s.io", Kind: "EndpointSlice"}),
	}
)

// vector is one line of the golden file: what other programs can check their own reading of the naming rule against.
type vector struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Tenant    string `json:"tenant"`
	Mirror    string `json:"mirror"`
}

// The published vectors of the naming rule never change: a mirror that is renamed is a mirror that is lost.
func TestMirrorNamesFollowThePublishedVectors(t *testing.T) {
	const path = "testdata/names.json"
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var vectors []vector
	require.NoError(t, json.Unmarshal(raw, &vectors))
	require.NotEmpty(t, vectors)
	seen := map[string]vector{}
	for i, v := range vectors {
		mirror := Mapping{Tenant: v.Tenant}.MirrorName(For(schema.ParseGroupKind(v.Kind)), v.Namespace, v.Name)
		if *update {
			vectors[i].Mirror = mirror
			continue
		}
		require.Equal(t, v.Mirror, mirror, "%+v", v)
		v.Kind = ""
		if other, found := seen[mirror]; found {
			require.Equal(t, other, v, "two triples share a mirror")
		}
		seen[mirror] = v
	}
	if *update {
		raw, err := json.MarshalIndent(vectors, "", " ")
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(path, append(raw, '\n'), 0o600))
	}
}

func TestMirrorNames(t *testing.T) {
	long := strings.Repeat("a", 60)
	for _, test := range []struct {
		name                         string
		kind                         Kind
		object, namespace, tenant    string
		want, wantPrefix, wantDigest string
	}{
		{name: "a short name is readable", kind: configMaps, object: "app", namespace: "default", tenant: "dev", want: "app-x-default-x-dev"},
		{name: "exactly 63 characters are not cut", kind: configMaps, object: strings.Repeat("a", 49), namespace: "default", tenant: "d", want: strings.Repeat("a", 49) + "-x-default-x-d"},
		{name: "64 characters are cut", kind: configMaps, object: strings.Repeat("a", 50), namespace: "default", tenant: "d", wantPrefix: strings.Repeat("a", 46)},
		{name: "exactly 52 characters are not cut where the kind has room for no more", kind: cronJobs, object: strings.Repeat("a", 38), namespace: "default", tenant: "d", want: strings.Repeat("a", 38) + "-x-default-x-d"},
		{name: "53 characters of a CronJob are cut", kind: cronJobs, object: strings.Repeat("a", 39), namespace: "default", tenant: "d", wantPrefix: strings.Repeat("a", 35)},
		{name: "53 characters of a Job are cut", kind: jobs, object: strings.Repeat("a", 39), namespace: "default", tenant: "d", wantPrefix: strings.Repeat("a", 35)},
		{name: "53 characters of a StatefulSet are cut", kind: statefulSets, object: strings.Repeat("a", 39), namespace: "default", tenant: "d", wantPrefix: strings.Repeat("a", 35)},
		{name: "53 characters of a Deployment are not cut", kind: deployments, object: strings.Repeat("a", 39), namespace: "default", tenant: "d", want: strings.Repeat("a", 39) + "-x-default-x-d"},
		{name: "a StatefulSet takes no dot", kind: statefulSets, object: "app.example", namespace: "default", tenant: "dev", wantPrefix: "app-example-x-default-x-dev"},
		{name: "a digit may begin a StatefulSet's name", kind: statefulSets, object: "1st", namespace: "default", tenant: "dev", want: "1st-x-default-x-dev"},
		{name: "a dot stays where the kind takes it", kind: configMaps, object: "app.example.com", namespace: "default", tenant: "dev", want: "app.example.com-x-default-x-dev"},
		{name: "a dot does not stay where the kind takes none", kind: services, object: "app.example", namespace: "default", tenant: "dev", wantPrefix: "app-example-x-default-x-dev"},
		{name: "a Service's name begins with a letter", kind: services, object: "1st", namespace: "default", tenant: "dev", wantPrefix: "x1st-x-default-x-dev"},
		{name: "a digit may begin a ConfigMap's name", kind: configMaps, object: "1st", namespace: "default", tenant: "dev", want: "1st-x-default-x-dev"},
		{name: "a separator in the name", kind: configMaps, object: "a-x-b", namespace: "c", tenant: "dev", wantPrefix: "a-x-b-x-c-x-dev"},
		{name: "a separator in the namespace", kind: configMaps, object: "a", namespace: "b-x-c", tenant: "dev", wantPrefix: "a-x-b-x-c-x-dev"},
		{name: "a separator in the tenant", kind: configMaps, object: "a", namespace: "b", tenant: "c-x-dev", wantPrefix: "a-x-b-x-c-x-dev"},
		{name: "a separator over the seam, from the left", kind: configMaps, object: "a-x", namespace: "b", tenant: "dev", wantPrefix: "a-x-x-b-x-dev"},
		{name: "a separator over the seam, from the right", kind: configMaps, object: "a", namespace: "x-b", tenant: "dev", wantPrefix: "a-x-x-b-x-dev"},
		{name: "upper case is lowered, and told apart", kind: configMaps, object: "App", namespace: "default", tenant: "dev", wantPrefix: "app-x-default-x-dev"},
		{name: "what no name may hold is replaced, and told apart", kind: configMaps, object: "a/../b", namespace: "default", tenant: "dev", wantPrefix: "a----b-x-default-x-dev"},
		{name: "a cut leaves no dash before the digest", kind: configMaps, object: strings.Repeat("a", 45) + "-" + long, namespace: "default", tenant: "dev", wantPrefix: strings.Repeat("a", 45)},
		{name: "nothing but separators still gives a name", kind: services, object: "---", namespace: "--", tenant: "-", wantPrefix: "x----x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := Mapping{Tenant: test.tenant}
			got := m.MirrorName(test.kind, test.namespace, test.object)
			if test.want != "" {
				require.Equal(t, test.want, got)
				return
			}
			require.Equal(t, test.wantPrefix+"-"+digest(test.object, test.namespace, test.tenant), got)
		})
	}
}

// drawPart draws a name, namespace or tenant, most of them built to be mistaken for another.
func drawPart(t *rapid.T, of string) string {
	return rapid.OneOf(
		rapid.StringMatching(`[ax](-x|-|x|a){0,4}[ax]?`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,70}[a-z0-9])?`),
		rapid.StringMatching(`[A-Za-z0-9._/-]{1,20}`),
		rapid.StringN(1, 20, 80),
	).Draw(t, of)
}

// Two tenant objects never share a mirror: whatever they are called.
func TestMirrorNamesAreInjective(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(allKinds).Draw(t, "kind")
		tenant := drawPart(t, "tenant")
		m := Mapping{Tenant: tenant}
		owner := map[string][2]string{}
		for range 20 {
			name, namespace := drawPart(t, "name"), drawPart(t, "namespace")
			checkName(t, kind, m.MirrorName(kind, namespace, name))
			checkOwner(t, owner, m.MirrorName(kind, namespace, name), [2]string{name, namespace})
			// The neighbours that the same text could be read as.
			whole := name + separator + namespace
			for i := range whole {
				if rest, found := strings.CutPrefix(whole[i:], separator); found && i > 0 && rest != "" {
					checkOwner(t, owner, m.MirrorName(kind, rest, whole[:i]), [2]string{whole[:i], rest})
				}
			}
		}
	})
}

// A mirror's name is that of one tenant object only, which recomputing it finds.
func TestMirrorNamesLeadBackByRecomputation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(allKinds).Draw(t, "kind")
		m := Mapping{Tenant: drawPart(t, "tenant"), HostNamespace: "team-dev"}
		tenant := object("example.com/v1", kind.Name(), nil)
		tenant.SetNamespace(drawPart(t, "namespace"))
		tenant.SetName(drawPart(t, "name"))
		mirror := m.Project(kind, tenant, nil, KeepNone)
		id, owned := m.Identify(kind, kind.Name(), mirror)
		require.Equal(t, Ours, owned)
		require.Equal(t, types.NamespacedName{Namespace: tenant.GetNamespace(), Name: tenant.GetName()}, id)

		mirror.SetName(mirror.GetName() + "0")
		_, owned = m.Identify(kind, kind.Name(), mirror)
		require.Equal(t, Other, owned, "marks count for nothing on an object of another name")
	})
}

// What the controllers of these kinds make under a mirror's name still has one that is a label.
func TestNamesMadeFromMirrorNamesAreLabels(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]Kind{cronJobs, jobs, statefulSets}).Draw(t, "kind")
		mirror := Mapping{Tenant: drawPart(t, "tenant")}.MirrorName(kind, drawPart(t, "namespace"), drawPart(t, "name"))
		made := fmt.Sprintf("%s-%d", mirror, rapid.Uint32().Draw(t, "number"))
		require.Empty(t, utilvalidation.IsValidLabelValue(made), "%q", made)
	})
}

// Tenants whose names continue each other share a host namespace, and still no mirror.
func TestMirrorNamesOfNeighbouringTenantsDiffer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom(allKinds).Draw(t, "kind")
		whole := drawPart(t, "name") + separator + drawPart(t, "namespace") + separator + drawPart(t, "tenant")
		owner := map[string][3]string{}
		for i := range whole {
			middle, found := strings.CutPrefix(whole[i:], separator)
			if !found || i == 0 {
				continue
			}
			for j := range middle {
				if tenant, found := strings.CutPrefix(middle[j:], separator); found && j > 0 && tenant != "" {
					triple := [3]string{whole[:i], middle[:j], tenant}
					checkOwner(t, owner, Mapping{Tenant: tenant}.MirrorName(kind, triple[1], triple[0]), triple)
				}
			}
		}
	})
}

func checkOwner[T comparable](t require.TestingT, owner map[string]T, mirror string, of T) {
	if other, found := owner[mirror]; found {
		require.Equal(t, other, of, "two objects share the mirror %q", mirror)
	}
	owner[mirror] = of
}

func checkName(t require.TestingT, kind Kind, mirror string) {
	require.LessOrEqual(t, len(mirror), kind.MaxNameLength())
	require.LessOrEqual(t, kind.MaxNameLength(), utilvalidation.DNS1123LabelMaxLength)
	require.Empty(t, kind.ValidName(mirror), "%q", mirror)
	require.Empty(t, utilvalidation.IsDNS1123Subdomain(mirror), "%q", mirror)
}

func FuzzMirrorName(f *testing.F) {
	f.Add("a-x", "b", "a", "x-b", "dev")
	f.Add("a-x-b", "c", "a", "b-x-c", "dev")
	f.Add("a.b", "c", "a-b", "c", "dev")
	f.Add("App", "c", "app", "c", "dev")
	f.Add(strings.Repeat("a", 100)+"b", "c", strings.Repeat("a", 100)+"c", "c", "dev")
	f.Add("1st", "c", "x1st", "c", "dev")
	f.Add("", "", "-", "", "")
	f.Fuzz(func(t *testing.T, name, namespace, otherName, otherNamespace, tenant string) {
		m := Mapping{Tenant: tenant}
		for _, kind := range allKinds {
			mirror, other := m.MirrorName(kind, namespace, name), m.MirrorName(kind, otherNamespace, otherName)
			checkName(t, kind, mirror)
			checkName(t, kind, other)
			if name != otherName || namespace != otherNamespace {
				require.NotEqual(t, mirror, other)
			}
		}
	})
}

func TestLabelValues(t *testing.T) {
	for _, value := range []string{"", "dev", strings.Repeat("a", 63)} {
		require.Equal(t, value, labelValue(value), "what a label can hold is kept")
	}
	long := strings.Repeat("a", 64)
	require.Equal(t, strings.Repeat("a", 46)+"-"+digest(long), labelValue(long))
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawPart(t, "a"), drawPart(t, "b")
		require.Empty(t, utilvalidation.IsValidLabelValue(labelValue(a)), "%q", a)
		if a != b {
			require.NotEqual(t, labelValue(a), labelValue(b))
		}
	})
}
