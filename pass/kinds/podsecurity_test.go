package kinds

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
)

// held is a mapping that holds Pods to a level.
func held(t testing.TB, level string) Mapping {
	t.Helper()
	security, err := NewPodSecurity(level)
	require.NoError(t, err)
	m := mapping
	m.Workloads.PodSecurity = security
	return m
}

// podOf is a tenant's Pod that every level allows, with what a test gives it besides. A field of its one container is
// given under "container".
func podOf(given Content) *unstructured.Unstructured {
	container := Content{"name": "c", "image": "local/tool:1", "securityContext": Content{
		"allowPrivilegeEscalation": false, "capabilities": Content{"drop": []any{"ALL"}}}}
	spec := Content{
		"securityContext": Content{"runAsNonRoot": true, "seccompProfile": Content{"type": "RuntimeDefault"}},
		"containers":      []any{container},
	}
	given = runtime.DeepCopyJSON(given)
	annotations := child(given, "annotations")
	maps.Copy(container, child(given, "container"))
	maps.Copy(child(container, "securityContext"), child(given, "context"))
	maps.Copy(child(spec, "securityContext"), child(given, "podContext"))
	for _, key := range []string{"annotations", "container", "context", "podContext"} {
		delete(given, key)
	}
	maps.Copy(spec, given)
	pod := object("v1", "Pod", Content{"spec": spec})
	for key, value := range annotations {
		setAnnotation(pod, key, value.(string))
	}
	return pod
}

func volumeOf(source string, content Content) Content {
	return Content{"volumes": []any{Content{"name": "v", source: content}}}
}

// What becomes of a field with which a tenant could reach for its node, the host's credentials, or its neighbours.
const (
	goes       = "is left out of the mirror"
	baseline   = "is refused by baseline and restricted"
	restricted = "is refused by restricted alone"
	passes     = "passes" // a comment says why it may
)

var reaching = []struct {
	field string
	given Content
	fate  string
	names string // what the refusal says, or where in the spec the field would be
}{
	// The node.
	{"hostNetwork", Content{"hostNetwork": true}, baseline, "host namespaces"},
	{"hostPID", Content{"hostPID": true}, baseline, "host namespaces"},
	{"hostIPC", Content{"hostIPC": true}, baseline, "host namespaces"},
	{"a hostPort", Content{"container": Content{"ports": []any{Content{"containerPort": int64(80), "hostPort": int64(80)}}}}, baseline, "hostPort"},
	{"a hostPath", volumeOf("hostPath", Content{"path": "/"}), baseline, "hostPath volumes"},
	{"privileged", Content{"context": Content{"privileged": true}}, baseline, "privileged"},
	{"a capability", Content{"context": Content{"capabilities": Content{"add": []any{"SYS_ADMIN"}}}}, baseline, "non-default capabilities"},
	{"procMount", Content{"context": Content{"procMount": "Unmasked"}}, baseline, "procMount"},
	{"a sysctl", Content{"podContext": Content{"sysctls": []any{Content{"name": "kernel.msgmax", "value": "1"}}}}, baseline, "forbidden sysctls"},
	{"an SELinux role", Content{"podContext": Content{"seLinuxOptions": Content{"role": "sysadm_r"}}}, baseline, "seLinuxOptions"},
	{"no seccomp profile", Content{"podContext": Content{"seccompProfile": Content{"type": "Unconfined"}}}, baseline, "seccompProfile"},
	{"no AppArmor profile", Content{"context": Content{"appArmorProfile": Content{"type": "Unconfined"}}}, baseline, "forbidden AppArmor profile"},
	{"no AppArmor profile, by annotation", Content{"annotations": Content{"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}}, baseline, "forbidden AppArmor profile"},
	{"a Windows host process", Content{"podContext": Content{"windowsOptions": Content{"hostProcess": true}}}, baseline, "hostProcess"},
	{"a probe of the node", Content{"container": Content{"livenessProbe": Content{"tcpSocket": Content{"host": "127.0.0.1", "port": int64(22)}}}}, baseline, "probe or lifecycle host"},
	{"an init container's privileges", Content{"initContainers": []any{Content{"name": "i", "securityContext": Content{"privileged": true}}}}, baseline, `container "i" must not set securityContext.privileged=true`},
	{"root", Content{"podContext": Content{"runAsUser": int64(0)}}, restricted, "runAsUser=0"},
	{"setuid", Content{"context": Content{"allowPrivilegeEscalation": true}}, restricted, "allowPrivilegeEscalation != false"},
	// The kubelet has run no git for it since 1.33 (CVE-2024-10220).
	{"a gitRepo", volumeOf("gitRepo", Content{"repository": "https://example.com"}), restricted, "restricted volume types"},
	// Needs a driver that the host's administrator installed on the node; it names no Secret but the tenant's.
	{"a flexVolume", volumeOf("flexVolume", Content{"driver": "example.com/d"}), restricted, "restricted volume types"},
	{"an NFS volume", volumeOf("nfs", Content{"server": "10.0.0.1", "path": "/"}), restricted, "restricted volume types"},
	// An inline volume of a driver of the host: for the driver's CSIDriver to allow (volumeLifecycleModes Ephemeral).
	{"an inline csi volume", volumeOf("csi", Content{"driver": "example.com"}), passes, "volumes"},

	// Where and how it is scheduled.
	{"nodeName", Content{"nodeName": "control-plane"}, goes, "nodeName"},
	{"priorityClassName", Content{"priorityClassName": "system-node-critical"}, goes, "priorityClassName"},
	{"priority", Content{"priority": int64(2000000000)}, goes, "priority"},
	{"preemptionPolicy", Content{"preemptionPolicy": "PreemptLowerPriority"}, goes, "preemptionPolicy"},
	{"overhead", Content{"overhead": Content{"cpu": "-1"}}, goes, "overhead"},
	// Which nodes a namespace's Pods may come to is for PodNodeSelector and PodTolerationRestriction on the host.
	{"tolerations", Content{"tolerations": []any{Content{"operator": "Exists"}}}, passes, "tolerations"},
	{"nodeSelector", Content{"nodeSelector": Content{"node-role.kubernetes.io/control-plane": ""}}, passes, "nodeSelector"},
	// Another scheduler of the host, or none: then the Pod waits.
	{"schedulerName", Content{"schedulerName": "other"}, passes, "schedulerName"},
	// One of the host's classes; the Pod is refused without it. A class that tenants must have is for a webhook to set.
	{"runtimeClassName", Content{"runtimeClassName": "kata"}, passes, "runtimeClassName"},
	// false is the safer of the two, true the default.
	{"hostUsers", Content{"hostUsers": true}, passes, "hostUsers"},

	// Credentials.
	{"serviceAccount", Content{"serviceAccount": "admin"}, goes, "serviceAccount"},
	// They come through their subresource, which judges them.
	{"ephemeralContainers", Content{"ephemeralContainers": []any{Content{"name": "d", "securityContext": Content{"privileged": true}}}}, goes, "ephemeralContainers"},
}

func TestWhatBecomesOfFieldsThatReachForTheHost(t *testing.T) {
	for _, row := range reaching {
		t.Run(row.field+" "+row.fate, func(t *testing.T) {
			kind := kindOf(podOf(nil)).(pod)
			refused := map[string]*Refusal{}
			var spec Content
			for _, level := range []string{"privileged", "baseline", "restricted"} {
				mirror := held(t, level).Project(kind, podOf(row.given), nil, KeepForeign)
				spec = child(mirror.Object, "spec")
				refused[level] = kind.Forbidden(held(t, level), mirror)
				if refused[level] != nil {
					require.Contains(t, refused[level].Message, "the Pod Security level "+level+" forbids it: ")
					require.Contains(t, refused[level].Message, "SYNCPASS_POD_SECURITY")
				}
			}
			require.Nil(t, refused["privileged"])
			require.Equal(t, row.fate == baseline, refused["baseline"] != nil, "baseline: %v", refused["baseline"])
			require.Equal(t, row.fate == baseline || row.fate == restricted, refused["restricted"] != nil, "restricted: %v", refused["restricted"])
			switch row.fate {
			case baseline, restricted:
				least := refused[map[string]string{baseline: "baseline", restricted: "restricted"}[row.fate]]
				require.Contains(t, least.Message+" "+least.Detail, row.names)
			case goes:
				require.NotContains(t, spec, row.names)
			case passes:
				require.Equal(t, row.given[row.names], spec[row.names])
			}
		})
	}
}

func TestARefusalNamesEveryPlace(t *testing.T) {
	pods := podOf(Content{"hostNetwork": true, "hostPID": true, "volumes": []any{Content{"name": "r", "hostPath": Content{"path": "/"}}},
		"context": Content{"privileged": true}})
	m := held(t, "baseline")
	kind := kindOf(pods).(pod)
	require.Equal(t, &Refusal{
		Message: "the Pod Security level baseline forbids it: host namespaces, hostPath volumes, privileged; have the Pod do without, or the host's operator allow more in SYNCPASS_POD_SECURITY",
		Detail:  `host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volume "r"), privileged (container "c" must not set securityContext.privileged=true)`,
	}, kind.Forbidden(m, m.Project(kind, pods, nil, KeepForeign)))
}

func TestASpecThatCannotBeReadIsRefusedWhereALevelHolds(t *testing.T) {
	pods := podOf(Content{"hostNetwork": "yes"})
	kind := kindOf(pods).(pod)
	refusal := kind.Forbidden(held(t, "baseline"), pods)
	require.NotNil(t, refusal)
	require.Contains(t, refusal.Message, "correct it in the tenant")
	require.NotEmpty(t, refusal.Detail)
	require.Nil(t, kind.Forbidden(held(t, "privileged"), pods), "the host's API server refuses it")
}

func TestOnlyTheThreeLevelsAreLevels(t *testing.T) {
	for _, level := range []string{"", "Baseline", "none"} {
		_, err := NewPodSecurity(level)
		require.ErrorContains(t, err, "must be one of privileged, baseline, restricted")
	}
}

// What syncpass puts into a mirror itself (tokens, variables, DNS) never is what a level forbids.
func TestWhatIsAddedToAMirrorIsAllowedByEveryLevel(t *testing.T) {
	m := held(t, "restricted")
	m.Workloads.ServiceAccount, m.Workloads.APIHost, m.Workloads.APIPort, m.Workloads.DNS = "default", "10.0.0.1", "6443", "10.0.0.2"
	pods := podOf(Content{"serviceAccountName": "robot", "subdomain": "web", "volumes": []any{
		Content{"name": "token", "projected": Content{"sources": []any{
			Content{"serviceAccountToken": Content{"path": "token"}}, Content{"configMap": Content{"name": RootCA}}}}},
		Content{"name": "data", "ephemeral": Content{}},
	}})
	kind := kindOf(pods).(pod)
	require.Nil(t, kind.Forbidden(m, m.Project(kind, pods, nil, KeepForeign)))
}

func TestADebugContainerIsJudgedByItself(t *testing.T) {
	good := Content{"name": "good", "image": "local/tool:1"}
	bad := Content{"name": "bad", "image": "local/tool:1", "securityContext": Content{"privileged": true}}
	worse := Content{"name": "worse", "image": "local/tool:1", "securityContext": Content{"procMount": "Unmasked"}}
	for _, test := range []struct {
		name, level  string
		pod          Content // of the tenant, from before the level was set
		asked        []any
		added        []any // names, of which the mirror is given the containers
		why, message string
	}{
		{"one that the level allows is added", "baseline", nil, []any{good}, []any{"good"}, "", ""},
		{"one that it forbids is withheld", "baseline", nil, []any{bad}, nil, `privileged (container "bad" must not set securityContext.privileged=true)`,
			"the Pod Security level baseline forbids its new debug containers: privileged; have the Pod do without, or the host's operator allow more in SYNCPASS_POD_SECURITY"},
		{"and does not stand in the way of others", "baseline", nil, []any{bad, good, worse}, []any{"good"},
			`privileged (container "bad" must not set securityContext.privileged=true), procMount (container "worse" must not set securityContext.procMount to "Unmasked")`,
			"the Pod Security level baseline forbids its new debug containers: privileged, procMount; have the Pod do without, or the host's operator allow more in SYNCPASS_POD_SECURITY"},
		{"nor does a Pod from before the level", "baseline", Content{"hostNetwork": true}, []any{good}, []any{"good"}, "", ""},
		{"which is no excuse either", "baseline", Content{"context": Content{"privileged": true}}, []any{bad}, nil,
			`privileged (container "bad" must not set securityContext.privileged=true)`, "the Pod Security level baseline forbids its new debug containers: privileged;"},
		{"what the Pod says for all containers holds for it", "restricted", nil,
			[]any{Content{"name": "d", "securityContext": Content{"allowPrivilegeEscalation": false, "capabilities": Content{"drop": []any{"ALL"}}}}}, []any{"d"}, "", ""},
		{"and where it says nothing, nothing", "restricted", Content{"podContext": Content{"runAsNonRoot": false}},
			[]any{Content{"name": "d", "securityContext": Content{"allowPrivilegeEscalation": false, "capabilities": Content{"drop": []any{"ALL"}}}}}, nil,
			"runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)", "runAsNonRoot != true"},
		{"privileged takes any", "privileged", nil, []any{bad, good}, []any{"bad", "good"}, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			tenant := podOf(test.pod)
			kind := kindOf(tenant).(pod)
			mirror := stored(mapping.Project(kind, tenant, nil, KeepForeign))
			require.False(t, kind.Owed(tenant, mirror))
			child(tenant.Object, "spec")["ephemeralContainers"] = runtime.DeepCopyJSONValue(test.asked)
			require.True(t, kind.Owed(tenant, mirror))
			parts := kind.Parts(held(t, test.level), tenant, mirror, true)
			require.Len(t, parts, 1)
			require.Equal(t, "ephemeralcontainers", parts[0].Subresource)
			if test.added == nil {
				require.Nil(t, parts[0].Object)
			} else {
				var names []any
				for _, container := range entries(child(parts[0].Object.Object, "spec")["ephemeralContainers"]) {
					names = append(names, container["name"])
				}
				require.Equal(t, test.added, names)
			}
			if test.why == "" {
				require.Nil(t, parts[0].Refusal)
				return
			}
			require.Equal(t, test.why, parts[0].Refusal.Detail)
			require.Contains(t, parts[0].Refusal.Message, test.message)
		})
	}
}

// B37: a tenant's class, its number and its preemption policy never reach the host, where they would mean something else
// or be refused; a class of the host that tenants may name does, and the host fills the rest in.
func TestPriorityClassesOfTheHostMayBeNamed(t *testing.T) {
	m := mapping
	m.Workloads.PriorityClasses = []string{"low", "high"}
	for name, kept := range map[string]any{"high": "high", "low": "low", "tenants-own": nil, "": nil} {
		pods := podOf(Content{"priorityClassName": name, "priority": int64(1000), "preemptionPolicy": "Never"})
		spec := child(m.Project(kindOf(pods), pods, nil, KeepForeign).Object, "spec")
		require.Equal(t, kept, spec["priorityClassName"], name)
		require.NotContains(t, spec, "priority")
		require.NotContains(t, spec, "preemptionPolicy")
	}
	pods := podOf(nil)
	require.NotContains(t, child(m.Project(kindOf(pods), pods, nil, KeepForeign).Object, "spec"), "priorityClassName")
}

// Whatever a tenant's API server calls a Pod can be judged, and the judgement changes nothing.
func TestAnythingCanBeJudged(t *testing.T) {
	m := held(t, "restricted")
	rapid.Check(t, func(t *rapid.T) {
		spec := drawMap(t, 3)
		for _, field := range []string{"containers", "volumes", "securityContext", "hostNetwork", "ephemeralContainers", "os"} {
			if rapid.Bool().Draw(t, field) {
				spec[field] = drawJSON(t, 3)
			}
		}
		drawn := object("v1", "Pod", Content{"spec": spec})
		before := drawn.DeepCopy()
		first := pod{}.Forbidden(m, drawn)
		require.Equal(t, before, drawn)
		require.Equal(t, first, pod{}.Forbidden(m, drawn))
	})
}
