package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/syncpass/syncpass/record"
)

// podOf is a Pod with a spec on top of one harmless container.
func podOf(t *testing.T, name, spec string) string {
	t.Helper()
	pod := object{"apiVersion": "v1", "kind": "Pod", "metadata": object{"name": name}, "spec": object{
		"automountServiceAccountToken": false,
		"containers":                   []any{object{"name": "c", "image": "example.com/c:1"}},
	}}
	var extra struct {
		Metadata, Spec object
	}
	require.NoError(t, yaml.UnmarshalStrict([]byte(spec), &extra))
	for field, value := range extra.Metadata {
		pod["metadata"].(object)[field] = value
	}
	for field, value := range extra.Spec {
		pod["spec"].(object)[field] = value
	}
	data, err := yaml.Marshal(pod)
	require.NoError(t, err)
	return string(data)
}

// hostAccess are S1: what gives a Pod the node that it runs on. The first word is the Pod's name.
var hostAccess = map[string]string{
	"host-network":    "spec: {hostNetwork: true}",
	"host-pid":        "spec: {hostPID: true}",
	"host-ipc":        "spec: {hostIPC: true}",
	"host-path":       "spec: {volumes: [{name: r, hostPath: {path: /}}]}",
	"host-port":       "spec: {containers: [{name: c, image: i, ports: [{containerPort: 1, hostPort: 6443}]}]}",
	"privileged":      "spec: {containers: [{name: c, image: i, securityContext: {privileged: true}}]}",
	"privileged-init": "spec: {initContainers: [{name: i, image: i, securityContext: {privileged: true}}]}",
	"capabilities":    "spec: {containers: [{name: c, image: i, securityContext: {capabilities: {add: [SYS_ADMIN]}}}]}",
	"sysctls":         "spec: {securityContext: {sysctls: [{name: kernel.msgmax, value: '1'}]}}",
	"seccomp":         "spec: {securityContext: {seccompProfile: {type: Unconfined}}}",
	"apparmor":        "spec: {containers: [{name: c, image: i, securityContext: {appArmorProfile: {type: Unconfined}}}]}",
	"selinux":         "spec: {securityContext: {seLinuxOptions: {type: spc_t}}}",
	"probe-host":      "spec: {containers: [{name: c, image: i, livenessProbe: {httpGet: {host: 169.254.169.254, port: 80}}}]}",
	"hook-host":       "spec: {containers: [{name: c, image: i, lifecycle: {preStop: {httpGet: {host: 169.254.169.254, port: 80}}}}]}",
}

// beyondBaseline are of S2: what the level baseline lets through, and restricted does not.
var beyondBaseline = map[string]string{
	"git-repo":    "spec: {volumes: [{name: v, gitRepo: {repository: 'https://example.com/hooks'}}]}",
	"flex-volume": "spec: {volumes: [{name: v, flexVolume: {driver: example.com/any}}]}",
	"foreign-nfs": "spec: {volumes: [{name: v, nfs: {server: 192.0.2.1, path: /}}]}",
	"foreign-lun": "spec: {volumes: [{name: v, iscsi: {targetPortal: '192.0.2.1:3260', iqn: iqn.2001-04.com.example:a, lun: 0}}]}",
	"root":        "spec: {securityContext: {runAsUser: 0}}",
}

// namesEverything names the host's own objects in every place where a Pod can name one (S4, S15).
const namesEverything = `
spec:
  imagePullSecrets: [{name: treasure}]
  subdomain: treasure
  resourceClaims: [{name: a, resourceClaimName: treasure}, {name: b, resourceClaimTemplateName: treasure}]
  initContainers: [{name: i, image: i, envFrom: [{secretRef: {name: treasure}}, {configMapRef: {name: treasure}}], env: [{name: A, valueFrom: {secretKeyRef: {name: treasure, key: password}}}]}]
  containers: [{name: c, image: i, envFrom: [{secretRef: {name: treasure}}, {configMapRef: {name: treasure}}], env: [{name: A, valueFrom: {secretKeyRef: {name: treasure, key: password}}}, {name: B, valueFrom: {configMapKeyRef: {name: treasure, key: setting}}}]}]
  volumes:
    - {name: v0, secret: {secretName: treasure}}
    - {name: v1, configMap: {name: treasure}}
    - {name: v2, projected: {sources: [{secret: {name: treasure}}, {configMap: {name: treasure}}]}}
    - {name: v3, persistentVolumeClaim: {claimName: treasure}}
    - {name: v4, csi: {driver: example.com, nodePublishSecretRef: {name: treasure}}}
    - {name: v5, csi: {driver: secrets-store.csi.k8s.io, volumeAttributes: {secretProviderClass: treasure}}}
    - {name: v6, azureFile: {secretName: treasure, shareName: s}}
    - {name: v7, iscsi: {targetPortal: '192.0.2.1:3260', iqn: iqn.2001-04.com.example:a, lun: 0, secretRef: {name: treasure}}}
    - {name: v8, flexVolume: {driver: example.com/any, secretRef: {name: treasure}}}
    - {name: v9, scaleIO: {gateway: 'https://192.0.2.1', system: s, volumeName: v, secretRef: {name: treasure}}}
    - {name: v10, rbd: {monitors: ['192.0.2.1'], image: i, secretRef: {name: treasure}}}
    - {name: v11, cephfs: {monitors: ['192.0.2.1'], secretRef: {name: treasure}}}
    - {name: v12, cinder: {volumeID: v, secretRef: {name: treasure}}}
    - {name: v13, storageos: {volumeName: v, secretRef: {name: treasure}}}
    - {name: v14, glusterfs: {endpoints: treasure, path: p}}
`

// placements is how many places namesEverything has.
var placements = strings.Count(namesEverything, "treasure")

func attackByPods(t *testing.T, h *hostile) {
	// A priority class of that name is in every cluster; the tenant's own says that it may be used anywhere.
	var all strings.Builder
	for name, spec := range hostAccess {
		all.WriteString("---\n" + podOf(t, name, spec))
	}
	for name, spec := range beyondBaseline {
		all.WriteString("---\n" + podOf(t, name, spec))
	}
	all.WriteString("---\n" + podOf(t, "placed", "spec: {nodeName: control-plane, tolerations: [{operator: Exists}], priorityClassName: system-node-critical, schedulerName: own}"))
	all.WriteString("---\n{apiVersion: v1, kind: ServiceAccount, metadata: {name: treasure}}\n")
	all.WriteString("---\n" + podOf(t, "account", "spec: {serviceAccountName: treasure, automountServiceAccountToken: true, volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t, audience: 'https://kubernetes.default.svc.cluster.local'}}]}}]}"))
	all.WriteString("---\n" + podOf(t, "certified", "spec: {volumes: [{name: t, projected: {sources: [{podCertificate: {signerName: kubernetes.io/kube-apiserver-client-pod, keyType: ED25519, credentialBundlePath: p}}]}}]}"))
	all.WriteString("---\n" + podOf(t, "names", namesEverything))
	all.WriteString("---\n" + podOf(t, "calm", ""))
	h.apply(t, record.Tenant, all.String())
	h.apply(t, record.Tenant, hostileDeployments)
	result, _ := h.pass(t, 3, nil)

	refused := func(row string, name string, says ...string) {
		h.try(t, row+" "+name, func(t *testing.T) {
			d := decided(t, result, "Pod", name)
			require.Equal(t, record.Rejected, d.Reason, "%+v", d)
			for _, text := range says {
				require.Contains(t, d.Message+d.Error, text)
			}
			require.Nil(t, h.host(t, podsResource, name))
		})
	}
	for name := range hostAccess {
		refused("S01 host access:", name, "Pod Security level baseline")
	}
	refused("S03 a certificate of the host's:", "certified", "podCertificate")
	h.try(t, "S01 host access: privileged, by kubectl debug", func(t *testing.T) {
		_, err := h.objects(record.Tenant, podsResource).Patch(t.Context(), "calm", types.StrategicMergePatchType,
			[]byte(`{"spec":{"ephemeralContainers":[{"name":"debug","image":"i","securityContext":{"privileged":true}}]}}`), metav1.PatchOptions{}, "ephemeralcontainers")
		require.NoError(t, err)
		again, _ := h.pass(t, 3, nil)
		require.Equal(t, record.Rejected, decided(t, again, "Pod", "calm").Reason)
		require.Nil(t, at(h.host(t, podsResource, "calm"), "spec", "ephemeralContainers"))
	})

	h.try(t, "S02 where and how a Pod is placed", func(t *testing.T) {
		mirror := h.host(t, podsResource, "placed")
		require.NotNil(t, mirror, "%+v", decided(t, result, "Pod", "placed"))
		require.Nil(t, at(mirror, "spec", "nodeName"))
		require.Nil(t, at(mirror, "spec", "priorityClassName"))
		require.EqualValues(t, 0, at(mirror, "spec", "priority"))
	})
	h.try(t, "S03 a ServiceAccount and a token of the host's", func(t *testing.T) {
		mirror := h.host(t, podsResource, "account")
		require.NotNil(t, mirror, "%+v", decided(t, result, "Pod", "account"))
		require.Equal(t, "default", at(mirror, "spec", "serviceAccountName"))
		require.Equal(t, false, at(mirror, "spec", "automountServiceAccountToken"))
		require.NotContains(t, jsonOf(t, mirror.Object["spec"]), "serviceAccountToken")
		tokens, err := h.objects(record.Host, secretsResource).List(t.Context(), metav1.ListOptions{LabelSelector: "tenantplane.io/kind=pod-tokens"})
		require.NoError(t, err)
		require.Len(t, tokens.Items, 1)
		requireTokenRefusedByHost(t, h.s, tokenIn(t, &tokens.Items[0], "token-0"))
	})
	h.try(t, "S04 S15 the host's Secrets by name", func(t *testing.T) {
		mirror := h.host(t, podsResource, "names")
		require.NotNil(t, mirror, "%+v", decided(t, result, "Pod", "names"))
		named := 0
		for _, text := range texts(mirror.Object["spec"]) {
			require.NotEqual(t, "treasure", text, "in %s", jsonOf(t, mirror.Object["spec"]))
			if text == h.mirror("treasure") {
				named++
			}
		}
		require.Equal(t, placements, named, "places that name a mirror instead, in %s", jsonOf(t, mirror.Object["spec"]))
	})
	attackByTemplates(t, h, result.Decisions)

	h.try(t, "S02 volumes of the host's infrastructure, at the level restricted", func(t *testing.T) {
		// Made anew, since what runs is not judged again.
		for name := range beyondBaseline {
			require.NoError(t, h.objects(record.Tenant, podsResource).Delete(t.Context(), name, *metav1.NewDeleteOptions(0)))
		}
		h.pass(t, 3, map[string]string{"SYNCPASS_MAX_DELETE_PERCENT": "100"})
		var again strings.Builder
		for name, spec := range beyondBaseline {
			again.WriteString("---\n" + podOf(t, name, spec))
		}
		h.apply(t, record.Tenant, again.String())
		strict, _ := h.pass(t, 3, map[string]string{"SYNCPASS_POD_SECURITY": "restricted"})
		for name := range beyondBaseline {
			require.Contains(t, decided(t, strict, "Pod", name).Message, "Pod Security level restricted", name)
			require.Nil(t, h.host(t, podsResource, name))
		}
	})
	h.try(t, "S02 the level is not the tenant's to choose", func(t *testing.T) {
		bad := h.run(t, map[string]string{"SYNCPASS_POD_SECURITY": "none"}, "pass")
		require.Equal(t, 5, bad.Exit)
		require.Contains(t, string(bad.Stderr), "SYNCPASS_POD_SECURITY")
	})
}

// hostileDeployments are Pods that the host's controllers would make.
const hostileDeployments = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: privileged}
spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i, securityContext: {privileged: true}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: tokens}
spec: {replicas: 0, selector: {matchLabels: {app: x}}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: c, image: i}], volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: names}
spec:
  replicas: 0
  selector: {matchLabels: {app: x, app.kubernetes.io/managed-by: tenantplane}}
  template:
    metadata: {labels: {app: x, app.kubernetes.io/managed-by: tenantplane, tenantplane.io/tenant: other}, annotations: {tenantplane.io/virtual-name: neighbour}}
    spec: {nodeName: control-plane, priorityClassName: system-node-critical, serviceAccountName: treasure, automountServiceAccountToken: true, containers: [{name: c, image: i, envFrom: [{secretRef: {name: treasure}}]}], volumes: [{name: v, secret: {secretName: treasure}}]}
`

func attackByTemplates(t *testing.T, h *hostile, decisions []record.Decision) {
	for name, says := range map[string]string{"privileged": "Pod Security level baseline", "tokens": "token"} {
		h.try(t, fmt.Sprintf("S01 S03 by way of the host's controllers: %s", name), func(t *testing.T) {
			for _, d := range decisions {
				if d.Kind == "Deployment" && d.TenantName == name {
					require.Equal(t, record.Rejected, d.Reason)
					require.Contains(t, d.Message, says)
				}
			}
			require.Nil(t, h.host(t, jobsResource, name))
		})
	}
	h.try(t, "S02 S03 S04 S05 by way of the host's controllers: names and marks", func(t *testing.T) {
		mirror := h.host(t, jobsResource, "names")
		require.NotNil(t, mirror)
		for _, text := range texts(mirror.Object["spec"]) {
			require.NotEqual(t, "treasure", text)
		}
		template := at(mirror, "spec", "template").(object)
		labels := template["metadata"].(object)["labels"].(object)
		require.Equal(t, h.name, labels["tenantplane.io/tenant"])
		require.NotContains(t, labels, "app.kubernetes.io/managed-by")
		require.NotContains(t, jsonOf(t, template["metadata"]), "virtual-name\"")
		spec := template["spec"].(object)
		require.Equal(t, "default", spec["serviceAccountName"])
		require.Equal(t, false, spec["automountServiceAccountToken"])
		require.NotContains(t, spec, "nodeName")
		require.NotContains(t, spec, "priorityClassName")
	})
}
