package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
)

// folder writes files, by their path in it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return dir
}

// objects are those of a folder: kind namespace/name in file: where.
func objects(t *testing.T, dir string) []string {
	t.Helper()
	files, err := snapshot.ReadFiles(dir)
	require.NoError(t, err)
	var found []string
	for _, object := range files.All() {
		where := strings.TrimPrefix(filepath.ToSlash(object.Where), filepath.ToSlash(dir)+"/")
		found = append(found, object.GetKind()+" "+object.GetNamespace()+"/"+object.GetName()+" in "+where)
	}
	return found
}

const aConfigMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {namespace: default, name: a}\n"

func TestFilesOfEveryFormAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"one object":          {map[string]string{"a.yaml": aConfigMap}, []string{"ConfigMap default/a in a.yaml: document 1"}},
		"JSON":                {map[string]string{"a.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"a"}}`}, []string{"ConfigMap default/a in a.json: document 1"}},
		"folders, in order":   {map[string]string{"b/c.yml": aConfigMap, "a.yaml": strings.Replace(aConfigMap, "name: a", "name: b", 1)}, []string{"ConfigMap default/b in a.yaml: document 1", "ConfigMap default/a in b/c.yml: document 1"}},
		"other files are not": {map[string]string{"a.yaml": aConfigMap, "README.md": "# words", ".git/config.yaml": "[core]", ".hidden.yaml": "- 1"}, []string{"ConfigMap default/a in a.yaml: document 1"}},
		"many documents, some of them empty": {map[string]string{"a.yaml": "# the first\n---\n" + aConfigMap + "---\n# nothing\n--- \n{apiVersion: v1, kind: Secret, metadata: {namespace: x, name: s}}\n...\n"},
			[]string{"ConfigMap default/a in a.yaml: document 1", "Secret x/s in a.yaml: document 3"}},
		"an object on the line of the mark": {map[string]string{"a.yaml": "--- {apiVersion: v1, kind: Secret, metadata: {namespace: x, name: s}}\r\n---\r\n{apiVersion: v1, kind: Secret, metadata: {namespace: x, name: t}}\r\n"},
			[]string{"Secret x/s in a.yaml: document 1", "Secret x/t in a.yaml: document 2"}},
		"a mark within a text": {map[string]string{"a.yaml": aConfigMap + "data:\n  text: |\n    ---\n    no end\n"}, []string{"ConfigMap default/a in a.yaml: document 1"}},
		"a list of anything": {map[string]string{"a.yaml": "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- {apiVersion: v1, kind: Pod, metadata: {namespace: x, name: p}}\n- {apiVersion: apps/v1, kind: Deployment, metadata: {namespace: x, name: d}}\n"},
			[]string{"Pod x/p in a.yaml: document 1: item 1", "Deployment x/d in a.yaml: document 1: item 2"}},
		"a list of one kind, whose items do not say it": {map[string]string{"a.json": `{"apiVersion":"apps/v1","kind":"DeploymentList","items":[{"metadata":{"namespace":"x","name":"d"}}]}`},
			[]string{"Deployment x/d in a.json: document 1: item 1"}},
		"an empty list": {map[string]string{"a.yaml": "{apiVersion: v1, kind: List, items: []}"}, nil},
		"an object that names no namespace": {map[string]string{"a.yaml": "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Namespace, metadata: {name: ns}}\n"},
			[]string{"ConfigMap default/a in a.yaml: document 1", "Namespace /ns in a.yaml: document 2"}},
		"one name for two kinds": {map[string]string{"a.yaml": aConfigMap + "---\n{apiVersion: v1, kind: Secret, metadata: {name: a}}\n"},
			[]string{"ConfigMap default/a in a.yaml: document 1", "Secret default/a in a.yaml: document 2"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.want, objects(t, folder(t, test.files))) })
	}
}

func TestAFileCanBeNamedItself(t *testing.T) {
	path := filepath.Join(folder(t, map[string]string{"printed": aConfigMap}), "printed")
	files, err := snapshot.ReadFiles(path)
	require.NoError(t, err)
	require.Len(t, files.All(), 1)
}

// What is wrong with a file is said with the file, the document, the cause and what to do.
func TestBadFilesAreNamed(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"no YAML":                            {"a: [1\n", []string{"a.yaml: document 1: it is no YAML", "leave the file out of the folder"}},
		"bytes":                              {"\x00\x01\x02", []string{"a.yaml: document 1: it is no YAML"}},
		"a template":                         {"kind: {{ .Values.kind }}\n", []string{"a.yaml: document 1: it is no YAML"}},
		"a field twice":                      {"a: 1\na: 2\n", []string{"a.yaml: document 1: it is no YAML", `"a"`}},
		"a text":                             {"hello", []string{"a.yaml: document 1: it holds no object", "kubectl get -o yaml"}},
		"a bare list":                        {"- 1\n- 2\n", []string{"a.yaml: document 1: it holds no object"}},
		"no kind":                            {aConfigMap + "---\nname: x\n", []string{"a.yaml: document 2: it names no apiVersion and kind", "give it both"}},
		"no apiVersion":                      {"kind: ConfigMap\n", []string{"a.yaml: document 1: it names no apiVersion and kind"}},
		"a kind that is a number":            {"{apiVersion: v1, kind: 7, metadata: {name: x}}", []string{"it names no apiVersion and kind"}},
		"an apiVersion that is none":         {"{apiVersion: a/b/c, kind: X, metadata: {name: x}}", []string{`its apiVersion "a/b/c" is none`}},
		"no name":                            {"{apiVersion: v1, kind: Pod, metadata: {generateName: x-}}", []string{"a.yaml: document 1: this Pod has no metadata.name", "give it the name"}},
		"a name that YAML takes for a truth": {"{apiVersion: v1, kind: Namespace, metadata: {name: n}}", []string{`the metadata.name of this Namespace is no text but "false"`, "put it in quotes"}},
		"no metadata":                        {"{apiVersion: v1, kind: Pod}", []string{"this Pod has no metadata.name"}},
		"metadata that is a text":            {"{apiVersion: v1, kind: Pod, metadata: x}", []string{"this Pod has no metadata.name"}},
		"a name that leads elsewhere":        {"{apiVersion: v1, kind: Pod, metadata: {name: ../x}}", []string{`named "../x"`, "correct metadata.name"}},
		"a name that acts on terminals":      {"{apiVersion: v1, kind: Pod, metadata: {name: \"x\\e[2J\"}}", []string{`named "x\x1b[2J"`}},
		"a namespace that leads elsewhere":   {"{apiVersion: v1, kind: Pod, metadata: {name: x, namespace: a/b}}", []string{`in a namespace "a/b"`}},
		"an object twice":                    {aConfigMap + "---\n" + aConfigMap, []string{"a.yaml: document 2: ConfigMap default/a is in ", "a.yaml: document 1 already; keep one of the two"}},
		"an object twice, once in a list":    {aConfigMap + "---\n{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}]}", []string{"document 2: item 1: ConfigMap default/a is in "}},
		"an object in two versions":          {"{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}}\n---\n{apiVersion: apps/v1beta1, kind: Deployment, metadata: {name: a}}", []string{"document 2: Deployment default/a is in "}},
		"an item that is a text":             {"{apiVersion: v1, kind: List, items: [x]}", []string{"a.yaml: document 1: item 1: it is no object"}},
		"an item of an untyped list":         {"{apiVersion: v1, kind: List, items: [{metadata: {name: x}}]}", []string{"a.yaml: document 1: item 1: it names no apiVersion and kind"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": test.text}))
			require.Error(t, err)
			for _, want := range test.want {
				assert.ErrorContains(t, err, want)
			}
			assert.NotContains(t, err.Error(), "\x1b")
		})
	}
}

func TestAllFaultsOfFilesAreReportedTogetherUpToABound(t *testing.T) {
	_, err := snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": "- 1", "b/c.yaml": "kind: X", "d.json": "{"}))
	for _, want := range []string{"a.yaml: document 1", "c.yaml: document 1", "d.json: document 1"} {
		assert.ErrorContains(t, err, want)
	}
	_, err = snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": strings.Repeat("- 1\n---\n", 200)}))
	assert.ErrorContains(t, err, "faults more; is it the right folder?")
	assert.Less(t, strings.Count(err.Error(), "\n"), 25)
}

func TestAFolderWithoutFilesIsNoSide(t *testing.T) {
	_, err := snapshot.ReadFiles(folder(t, map[string]string{"README.md": "words"}))
	require.ErrorContains(t, err, "there is no .yaml, .yml or .json file in it")
	_, err = snapshot.ReadFiles(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	require.ErrorContains(t, err, "name a folder")
}

// sidesOf are sides with one file each.
func sidesOf(t *testing.T, tenant, host string) *snapshot.FileSides {
	t.Helper()
	s := &snapshot.FileSides{}
	var err error
	s.Tenant, err = snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": tenant}))
	require.NoError(t, err)
	s.Host, err = snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": host}))
	require.NoError(t, err)
	return s
}

func takeFiles(t *testing.T, s *snapshot.FileSides, resources ...policy.Resource) plan.Snapshot {
	t.Helper()
	taken, _, err := s.Take(t.Context(), snapshot.Request{
		Namespace: "team-dev", Resources: resources,
		Mapping: kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{UID: "owner"}},
	})
	require.NoError(t, err)
	return taken
}

func ofKind(apiVersion, kind string) policy.Resource {
	return policy.Resource{APIVersion: apiVersion, Kind: kind, Direction: policy.ToHost}
}

const nothing = "{apiVersion: v1, kind: List, items: []}"

func TestFilesAreTakenAsListsAre(t *testing.T) {
	s := sidesOf(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: default, name: a, uid: u, resourceVersion: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: other, name: b, uid: u, resourceVersion: "1", labels: [x]}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: kube-system, uid: uid-of-tenant}}
`, `
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: m, uid: u, resourceVersion: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-prod, name: m, uid: u, resourceVersion: "1"}}
`)
	taken := takeFiles(t, s, ofKind("v1", "ConfigMap"))
	require.Equal(t, "uid-of-tenant", taken.TenantUID)
	tenant, host := names(taken.Kinds[0])
	require.Equal(t, []string{"default/a"}, tenant)
	require.Equal(t, []string{"team-dev/m"}, host)
	require.Len(t, taken.Kinds[0].Malformed, 1)
	require.Empty(t, s.Notes)
}

func TestWhichKindsFilesServe(t *testing.T) {
	const definition = "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: x}, spec: {group: example.com, scope: %, names: {plural: widgets, kind: Widget}, versions: [{name: v1, served: true}, {name: v0, served: false}]}}"
	namespaced, cluster := strings.Replace(definition, "%", "Namespaced", 1), strings.Replace(definition, "%", "Cluster", 1)
	for name, test := range map[string]struct {
		tenant, host string
		resource     policy.Resource
		want, noted  string
	}{
		"a built-in kind":                     {nothing, nothing, ofKind("apps/v1", "Deployment"), "", ""},
		"a built-in kind in no namespace":     {nothing, nothing, ofKind("rbac.authorization.k8s.io/v1", "ClusterRole"), "is cluster-scoped on the tenant", ""},
		"a version that there never was":      {nothing, nothing, ofKind("apps/v7", "Deployment"), "the tenant does not serve apps/v7 Deployment", ""},
		"a kind that cannot be listed":        {nothing, nothing, ofKind("v1", "Binding"), "does not let v1 Binding be listed", ""},
		"a kind that both define":             {namespaced, namespaced, ofKind("example.com/v1", "Widget"), "", ""},
		"a version that is not served":        {namespaced, namespaced, ofKind("example.com/v0", "Widget"), "does not serve example.com/v0 Widget", ""},
		"a kind that is in no namespace":      {namespaced, cluster, ofKind("example.com/v1", "Widget"), "is cluster-scoped on the host", ""},
		"a kind that one side defines":        {namespaced, cluster, ofKind("example.com/v1", "Gadget"), "the tenant does not serve example.com/v1 Gadget", ""},
		"a kind, and no definitions":          {nothing, nothing, ofKind("example.com/v1", "Widget"), "", "example.com/v1 Widget is taken to be namespaced and served"},
		"a kind that one side's objects show": {namespaced, strings.Replace(namespaced, "Widget", "Other", 1) + "\n---\n{apiVersion: example.com/v1, kind: Widget, metadata: {namespace: team-dev, name: w, uid: u, resourceVersion: \"1\"}}", ofKind("example.com/v1", "Widget"), "", "example.com/v1 Widget is taken"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sidesOf(t, test.tenant, test.host)
			got := takeFiles(t, s, test.resource).Kinds[0].Unavailable
			if test.want == "" {
				assert.Empty(t, got)
			}
			assert.Contains(t, got, test.want)
			assert.Contains(t, strings.Join(s.Notes, "\n"), test.noted)
			if test.noted == "" {
				assert.Empty(t, s.Notes)
			}
		})
	}
}

func TestAnObjectOfAnotherVersionMakesItsKindUnknown(t *testing.T) {
	s := sidesOf(t, "{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, metadata: {name: a, uid: u, resourceVersion: \"1\"}}", nothing)
	k := takeFiles(t, s, ofKind("autoscaling/v2", "HorizontalPodAutoscaler")).Kinds[0]
	require.Equal(t, "listing it on the tenant failed", k.Unavailable)
	require.Contains(t, k.Error, "a.yaml: document 1: it is of apiVersion autoscaling/v1, and the policy names autoscaling/v2")
	require.Contains(t, k.Error, "kubectl get horizontalpodautoscaler.v2.autoscaling -o yaml")
	require.Empty(t, k.Tenant)
}

func TestAKindThatTheTenantsFilesLackIsSaid(t *testing.T) {
	s := sidesOf(t, nothing, "{apiVersion: v1, kind: ConfigMap, metadata: {namespace: team-dev, name: a, uid: u, resourceVersion: \"1\"}}")
	takeFiles(t, s, ofKind("v1", "ConfigMap"))
	require.Len(t, s.Notes, 1)
	require.Contains(t, s.Notes[0], "the tenant's files have no ConfigMap")
}

func TestMirrorsWithoutTheirManagersAreSaid(t *testing.T) {
	mapping := kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{UID: "owner"}}
	for _, test := range []struct {
		managers string
		noted    bool
	}{{"", true}, {`,"managedFields":[{"manager":"syncpass"}]`, false}} {
		tenant := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": "default", "name": "a"}}}
		mirror := marshal(mapping.Project(kinds.For(schema.GroupKind{Kind: "ConfigMap"}), tenant, nil, kinds.KeepNone).Object)
		mirror = strings.Replace(mirror, `"metadata":{`, `"metadata":{"uid":"u","resourceVersion":"1"`+test.managers+",", 1)
		s := sidesOf(t, aConfigMap, mirror)
		takeFiles(t, s, ofKind("v1", "ConfigMap"))
		assert.Equal(t, test.noted, strings.Contains(strings.Join(s.Notes, "\n"), "--show-managed-fields"), "%s", mirror)
	}
}

func TestASecretIsFoldedAsAServerDoes(t *testing.T) {
	files, err := snapshot.ReadFiles(folder(t, map[string]string{"a.yaml": "{apiVersion: v1, kind: Secret, metadata: {name: s}, data: {a: b2xk, b: b2xk}, stringData: {a: new}}"}))
	require.NoError(t, err)
	secret := files.Of(schema.GroupKind{Kind: "Secret"})[0].Object
	require.Equal(t, map[string]any{"a": "bmV3", "b": "b2xk"}, secret["data"])
	require.Equal(t, "Opaque", secret["type"])
	require.NotContains(t, secret, "stringData")
}

func TestOfNodesOnlyThoseAreTakenThatMirrorsAreOn(t *testing.T) {
	mapping := kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev", Owner: metav1.OwnerReference{UID: "owner"}}
	sides := newNodeSides(t)
	sides.request.Mapping = mapping
	mirror := sides.mirror("p", "n1")
	node := func(name string) string {
		return "\n---\n{apiVersion: v1, kind: Node, metadata: {name: " + name + ", uid: u, resourceVersion: \"1\"}}"
	}
	s := sidesOf(t, nothing, `{"apiVersion":"v1","kind":"PodList","items":[`+mirror+`]}`+node("n1")+node("n2"))
	taken := takeFiles(t, s, nodes, pods)
	_, host := names(taken.Kinds[0])
	require.Equal(t, []string{"/n1"}, host)

	alone := takeFiles(t, s, nodes)
	require.Contains(t, alone.Kinds[0].Unavailable, "the policy has no Pods")
}

func TestTokensOfPodsAreFoundByTheirLabels(t *testing.T) {
	mapping := kinds.Mapping{Tenant: "dev", HostNamespace: "team-dev"}
	labels := strings.ReplaceAll(mapping.TokenSelector(), "=", ": ")
	s := sidesOf(t, nothing, "{apiVersion: v1, kind: Secret, metadata: {namespace: team-dev, name: t, labels: {"+labels+"}, annotations: {"+kinds.AnnotationRenewAfter+": \"2030-01-01T00:00:00Z\"}, ownerReferences: [{apiVersion: v1, kind: Pod, name: p, uid: of-the-pod}]}}\n---\n{apiVersion: v1, kind: Secret, metadata: {namespace: team-dev, name: other}}")
	k := takeFiles(t, s, pods).Kinds[0]
	require.Len(t, k.Tokens, 1)
	require.EqualValues(t, "of-the-pod", k.Tokens[0].Owner)
	require.Equal(t, 2030, k.Tokens[0].RenewAfter.Year())

	s = sidesOf(t, nothing, nothing)
	takeFiles(t, s, pods)
	require.Contains(t, strings.Join(s.Notes, "\n"), "no Secrets")
}
