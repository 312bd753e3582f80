package e2e

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/syncpass/syncpass/pass/kinds"
	"github.com/syncpass/syncpass/record"
)

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// tokenIn is the text of a key of a Secret.
func tokenIn(t *testing.T, secret *unstructured.Unstructured, key string) string {
	t.Helper()
	encoded, _ := at(secret, "data", key).(string)
	token, err := base64.StdEncoding.DecodeString(encoded)
	require.NoError(t, err)
	require.NotEmpty(t, token)
	return string(token)
}

// attackCredentials has Secrets that controllers act on (S14), and a look for the values of all others (S37).
func attackCredentials(t *testing.T, h *hostile) {
	h.apply(t, record.Tenant, `
{apiVersion: v1, kind: Secret, metadata: {name: token, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}
---
{apiVersion: v1, kind: Secret, metadata: {name: helm}, type: helm.sh/release.v1, data: {release: eA==}}
---
{apiVersion: v1, kind: Secret, metadata: {name: bootstrap-token-abcdef}, type: bootstrap.kubernetes.io/token, stringData: {token-id: abcdef, token-secret: 0123456789abcdef, usage-bootstrap-authentication: "true"}}
---
{apiVersion: v1, kind: Secret, metadata: {name: disguised, annotations: {kubernetes.io/service-account.name: treasure, kubernetes.io/service-account.uid: u}}, type: Opaque, stringData: {token: eyJhbGciOi.tenant.value}}
---
{apiVersion: v1, kind: Secret, metadata: {name: turned}, type: Opaque, stringData: {k: v}}
---
{apiVersion: v1, kind: Secret, metadata: {name: pull}, type: kubernetes.io/dockerconfigjson, stringData: {.dockerconfigjson: '{"auths":{}}'}}
---
{apiVersion: v1, kind: Secret, metadata: {name: valued}, stringData: {password: correct-horse-battery}}
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: credited, annotations: {eks.amazonaws.com/role-arn: admin}}, secrets: [{name: treasure}], imagePullSecrets: [{name: treasure}], automountServiceAccountToken: true}
`)
	result, _ := h.pass(t, 0, nil)
	for _, name := range []string{"token", "helm", "bootstrap-token-abcdef"} {
		h.try(t, "S14 a Secret that a controller acts on: "+name, func(t *testing.T) {
			require.Nil(t, h.host(t, secretsResource, name))
		})
	}
	h.try(t, "S14 a Secret that only looks like a token", func(t *testing.T) {
		mirror := h.host(t, secretsResource, "disguised")
		require.Equal(t, "Opaque", at(mirror, "type"))
		require.Equal(t, "eyJhbGciOi.tenant.value", tokenIn(t, mirror, "token"), "the host's controllers have put nothing in")
	})
	h.try(t, "S14 a Secret that becomes a token later", func(t *testing.T) {
		secrets := h.objects(record.Tenant, secretsResource)
		require.NoError(t, secrets.Delete(t.Context(), "turned", metav1.DeleteOptions{}))
		h.apply(t, record.Tenant, "{apiVersion: v1, kind: Secret, metadata: {name: turned, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}")
		h.pass(t, 0, nil)
		require.Nil(t, h.host(t, secretsResource, "turned"), "its mirror goes, and no token comes")
		there, err := secrets.Get(t.Context(), "turned", metav1.GetOptions{})
		require.NoError(t, err)
		requireTokenRefusedByHost(t, h.s, tokenOrNone(there))
	})
	h.try(t, "S15 a ServiceAccount that names the host's Secrets", func(t *testing.T) {
		mirror := h.host(t, accountsResource, "credited")
		require.NotContains(t, jsonOf(t, mirror.Object), "treasure")
		require.NotContains(t, mirror.Object, "automountServiceAccountToken")
	})
	h.try(t, "S37 the values of Secrets, in everything that is printed and recorded", func(t *testing.T) {
		secrets := h.objects(record.Tenant, secretsResource)
		_, err := secrets.Patch(t.Context(), "valued", types.MergePatchType, []byte(`{"stringData":{"password":"another-horse-battery"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = h.objects(record.Host, secretsResource).Patch(t.Context(), h.mirror("valued"), types.MergePatchType,
			[]byte(`{"stringData":{"password":"hosts-horse-battery"}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		printed := ""
		for _, args := range [][]string{{"plan", "-o", "json"}, {"pass", "-o", "wide"}, {"explain", "secret", h.name + "/valued", "-o", "yaml"}} {
			ran := h.run(t, map[string]string{"SYNCPASS_LOG_LEVEL": "debug"}, args...)
			printed += string(ran.Stdout) + string(ran.Stderr)
		}
		require.Contains(t, printed, "Conflict")
		printed += jsonOf(t, h.decision(t).Object)
		events, err := h.objects(record.Host, eventsResource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		printed += jsonOf(t, events.Items)
		for _, value := range []string{"correct-horse-battery", "another-horse-battery", "hosts-horse-battery", "host-only-value"} {
			require.NotContains(t, printed, value)
			require.NotContains(t, printed, base64.StdEncoding.EncodeToString([]byte(value)))
		}
	})
	h.try(t, "S37 the credentials of both sides, in a log of everything", func(t *testing.T) {
		ran := h.run(t, map[string]string{"SYNCPASS_LOG_LEVEL": "debug"}, "pass", "-o", "json")
		for _, text := range []string{"Bearer", "eyJ"} { // every token of a ServiceAccount begins so
			require.NotContains(t, string(ran.Stdout)+string(ran.Stderr), text)
		}
	})
	require.NotEmpty(t, result.Decisions)
}

func tokenOrNone(secret *unstructured.Unstructured) string {
	encoded, _ := at(secret, "data", "token").(string)
	token, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || len(token) == 0 {
		return "none"
	}
	return string(token)
}

// attackNetwork has Services, endpoints, policies and Ingresses that reach for others' traffic (S22 to S26).
func attackNetwork(t *testing.T, h *hostile) {
	h.apply(t, record.Tenant, `
{apiVersion: v1, kind: Service, metadata: {name: hijack}, spec: {externalIPs: [10.0.0.53, 192.0.2.7], selector: {app: x}, ports: [{port: 53}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: alias}, spec: {type: ExternalName, externalName: treasure.`+h.name+`.svc.cluster.local}}
---
{apiVersion: v1, kind: Service, metadata: {name: everybody}, spec: {selector: {app: treasure}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: neighbours}, spec: {selector: {app: x, tenantplane.io/tenant: other}, ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: bare}, spec: {ports: [{port: 80}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: treasure}, subsets: [{addresses: [{ip: 192.0.2.9}], ports: [{port: 80}]}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: attach, labels: {kubernetes.io/service-name: treasure}}, addressType: IPv4, endpoints: [{addresses: [192.0.2.9]}], ports: [{port: 80}]}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: posing, labels: {kubernetes.io/service-name: bare, endpointslice.kubernetes.io/managed-by: endpointslice-controller.k8s.io}}, addressType: IPv4, endpoints: [{addresses: [192.0.2.9]}], ports: [{port: 80}]}
---
{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: open}, spec: {podSelector: {}, policyTypes: [Ingress], ingress: [{from: [{namespaceSelector: {}}, {namespaceSelector: {matchLabels: {team: other}}}, {podSelector: {matchLabels: {tenantplane.io/tenant: other}}}]}]}}
---
{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: hold}, spec: {maxUnavailable: 0, selector: {}}}
---
{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: front}, spec: {tls: [{hosts: [a.example.com], secretName: treasure}], defaultBackend: {service: {name: treasure, port: {number: 80}}}, rules: [{host: treasure, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: treasure, port: {number: 80}}}}]}}]}}
`)
	result, _ := h.pass(t, 0, nil)
	h.try(t, "S22 externalIPs", func(t *testing.T) {
		require.NotContains(t, h.host(t, servicesResource, "hijack").Object["spec"], "externalIPs")
		require.Contains(t, decided(t, result, "Service", "hijack").Message, "spec.externalIPs do not cross")
		// The host's own administrator may give it some, and nothing of it goes to the tenant or is taken away.
		_, err := h.objects(record.Host, servicesResource).Patch(t.Context(), h.mirror("hijack"), types.MergePatchType, []byte(`{"spec":{"externalIPs":["192.0.2.8"]}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		_, err = h.objects(record.Tenant, servicesResource).Patch(t.Context(), "hijack", types.MergePatchType, []byte(`{"spec":{"externalIPs":["10.0.0.54"],"publishNotReadyAddresses":true}}`), metav1.PatchOptions{})
		require.NoError(t, err)
		h.pass(t, 0, nil)
		require.Equal(t, []any{"192.0.2.8"}, at(h.host(t, servicesResource, "hijack"), "spec", "externalIPs"))
		require.Equal(t, true, at(h.host(t, servicesResource, "hijack"), "spec", "publishNotReadyAddresses"))
	})
	h.try(t, "S22 an ExternalName that names a Service of the host's namespace", func(t *testing.T) {
		// A name in the cluster's own domain is one of the tenant's, and becomes its mirror's.
		require.NotContains(t, jsonOf(t, h.host(t, servicesResource, "alias").Object["spec"]), `"treasure.`+h.name+`.svc`)
	})
	for _, name := range []string{"everybody", "neighbours"} {
		h.try(t, "S24 a selector of others' Pods: "+name, func(t *testing.T) {
			selector := at(h.host(t, servicesResource, name), "spec", "selector").(object)
			require.Equal(t, h.name, selector[kinds.LabelTenant])
			require.Equal(t, h.name, selector[kinds.LabelVirtualNamespace])
		})
	}
	h.try(t, "S23 endpoints for a Service of the host's", func(t *testing.T) {
		require.Equal(t, h.mirror("treasure"), h.host(t, slicesResource, "attach").GetLabels()["kubernetes.io/service-name"])
		require.NotNil(t, h.host(t, endpointsResource, "treasure"))
		slices, err := h.objects(record.Host, slicesResource).List(t.Context(), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=treasure"})
		require.NoError(t, err)
		require.NotContains(t, jsonOf(t, slices.Items), "192.0.2.9")
		require.Nil(t, h.host(t, slicesResource, "posing"), "one that poses as a controller's")
	})
	h.try(t, "S23 endpoints at addresses of the machine and its surroundings", func(t *testing.T) { attackAddresses(t, h) })
	h.try(t, "S25 a NetworkPolicy for others' Pods and from everywhere", func(t *testing.T) {
		spec := h.host(t, networksResource, "open").Object["spec"].(object)
		require.Equal(t, object{kinds.LabelTenant: h.name, kinds.LabelVirtualNamespace: h.name}, spec["podSelector"].(object)["matchLabels"])
		for _, rule := range spec["ingress"].([]any) {
			for _, peer := range rule.(object)["from"].([]any) {
				require.NotContains(t, peer, "namespaceSelector")
				require.Equal(t, h.name, peer.(object)["podSelector"].(object)["matchLabels"].(object)[kinds.LabelTenant])
			}
		}
	})
	h.try(t, "S34 a PodDisruptionBudget over everybody", func(t *testing.T) {
		selector := at(h.host(t, budgetsResource, "hold"), "spec", "selector", "matchLabels").(object)
		require.Equal(t, h.name, selector[kinds.LabelTenant])
	})
	h.try(t, "S26 an Ingress to the host's Services and certificates, and a listed reference", func(t *testing.T) {
		for _, text := range texts(h.host(t, ingressesResource, "front").Object["spec"]) {
			require.NotEqual(t, "treasure", text)
		}
	})
}

// attackAddresses is what API servers refuse to store, so that the tenant's has to lie about it: the host's says no.
func attackAddresses(t *testing.T, h *hostile) {
	lie := h.lieAbout(t, slicesResource, "discovery.k8s.io/v1", "EndpointSlice")
	places := map[string]string{"loopback": "127.0.0.1", "metadata": "169.254.169.254", "multicast": "224.0.0.1", "unspecified": "0.0.0.0"}
	sixes := map[string]string{"loopback6": "::1", "linklocal6": "fe80::1", "multicast6": "ff02::1"}
	for kind, all := range map[string]map[string]string{"IPv4": places, "IPv6": sixes} {
		for name, address := range all {
			lie.add(name, object{"addressType": kind, "endpoints": []any{object{"addresses": []any{address}}}, "ports": []any{object{"port": 443}},
				"metadata": object{"labels": object{"kubernetes.io/service-name": "bare"}}})
		}
	}
	lie.begin()
	defer lie.end()
	result, _ := h.pass(t, 3, map[string]string{"SYNCPASS_MAX_DELETE_PERCENT": "100"})
	for _, all := range []map[string]string{places, sixes} {
		for name := range all {
			require.Equal(t, record.Rejected, decided(t, result, "EndpointSlice", name).Reason)
			require.Nil(t, h.host(t, slicesResource, name))
		}
	}
}

// attackStorage asks for volumes of others (S27).
func attackStorage(t *testing.T, h *hostile) {
	h.apply(t, record.Tenant, `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: grab, annotations: {volume.beta.kubernetes.io/storage-provisioner: evil, pv.kubernetes.io/bind-completed: "yes"}}, spec: {volumeName: pv-of-another, storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
---
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: clone}, spec: {dataSource: {kind: PersistentVolumeClaim, name: treasure}, storageClassName: none, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}
`)
	h.pass(t, 0, nil)
	h.try(t, "S27 another's volume by its name", func(t *testing.T) {
		mirror := h.host(t, claimsResource, "grab")
		require.NotContains(t, mirror.Object["spec"], "volumeName")
		require.NotContains(t, mirror.GetAnnotations(), "pv.kubernetes.io/bind-completed")
		require.NotContains(t, mirror.GetAnnotations(), "volume.beta.kubernetes.io/storage-provisioner")
	})
	h.try(t, "S27 a copy of the host's claim", func(t *testing.T) {
		require.Equal(t, h.mirror("treasure"), at(h.host(t, claimsResource, "clone"), "spec", "dataSource", "name"))
	})
	h.try(t, "S27 a copy out of another namespace", func(t *testing.T) {
		lie := h.lieAbout(t, claimsResource, "v1", "PersistentVolumeClaim")
		lie.add("across", object{"spec": object{"dataSourceRef": object{"kind": "PersistentVolumeClaim", "name": "c", "namespace": "kube-system"},
			"accessModes": []any{"ReadWriteOnce"}, "storageClassName": "none", "resources": object{"requests": object{"storage": "1Gi"}}}})
		lie.begin()
		defer lie.end()
		h.run(t, map[string]string{"SYNCPASS_MAX_DELETE_PERCENT": "100"}, "pass")
		if mirror := h.host(t, claimsResource, "across"); mirror != nil {
			require.NotContains(t, jsonOf(t, mirror.Object["spec"]), "kube-system\"")
		}
	})
}

// attackOutput puts what terminals act on into everything that is printed (S36).
func attackOutput(t *testing.T, h *hostile) {
	const nasty = "\x1b[2J\x1b]0;owned\x07\r\nerror: forged\u202e\u2066\u009b31m"
	configMap := &unstructured.Unstructured{Object: object{"apiVersion": "v1", "kind": "ConfigMap", "data": object{"k": nasty}}}
	configMap.SetName("nasty")
	configMap.SetAnnotations(map[string]string{"example.com/note": nasty})
	_, err := h.objects(record.Tenant, configsResource).Create(t.Context(), configMap, metav1.CreateOptions{})
	require.NoError(t, err)
	h.pass(t, 0, nil)

	lie := h.lieAbout(t, secretsResource, "v1", "Secret")
	lie.add("nasty", object{"type": nasty, "data": object{nasty: "eA=="}, "metadata": object{"annotations": object{nasty: nasty}, "labels": object{nasty: nasty}}})
	lie.add("number", object{"metadata": object{"labels": object{"k": 7}}})
	lie.begin()
	for _, format := range []string{"table", "wide", "json", "yaml"} {
		for _, log := range []string{"text", "json"} {
			h.try(t, "S36 control characters, into "+format+" and a log of "+log, func(t *testing.T) {
				ran := h.run(t, map[string]string{"SYNCPASS_LOG_FORMAT": log, "SYNCPASS_LOG_LEVEL": "debug"}, "pass", "-o", format)
				require.Equal(t, 3, ran.Exit, "%s", ran.Stderr)
				requirePrintable(t, string(ran.Stdout))
				requirePrintable(t, string(ran.Stderr))
			})
		}
	}
	lie.end()
	h.try(t, "S36 control characters, into the SyncDecision and the Events", func(t *testing.T) {
		events, err := h.objects(record.Host, eventsResource).List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		require.NotEmpty(t, events.Items)
		for _, text := range append(texts(h.decision(t).Object), eventTexts(events)...) {
			requirePrintable(t, text)
		}
	})
	h.try(t, "S35 the host's names, into the tenant", func(t *testing.T) {
		for _, kind := range []struct {
			resource string
			list     func() (*unstructured.UnstructuredList, error)
		}{
			{"configmaps", func() (*unstructured.UnstructuredList, error) {
				return h.objects(record.Tenant, configsResource).List(t.Context(), metav1.ListOptions{})
			}},
			{"events", func() (*unstructured.UnstructuredList, error) {
				return h.objects(record.Tenant, eventsResource).List(t.Context(), metav1.ListOptions{})
			}},
		} {
			list, err := kind.list()
			require.NoError(t, err)
			require.NotContains(t, jsonOf(t, list.Items), "-x-"+h.name+"-x-", kind.resource)
			require.NotContains(t, jsonOf(t, list.Items), "tenantplane", kind.resource)
		}
	})
}

func eventTexts(events *unstructured.UnstructuredList) []string {
	var all []string
	for i := range events.Items {
		all = append(all, texts(events.Items[i].Object)...)
	}
	return all
}

// requirePrintable fails on what a terminal acts on, or shows in another order than it stands there.
func requirePrintable(t *testing.T, text string) {
	t.Helper()
	for _, r := range text {
		bad := r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f || strings.ContainsRune("\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r)
		require.False(t, bad, "%U in %.2000q", r, text)
	}
	require.NotContains(t, text, "\nerror: forged")
}

// requireTokenRefusedByHost shows that a token opens nothing on the host.
func requireTokenRefusedByHost(t *testing.T, s *surroundings, token string) {
	t.Helper()
	config := rest.AnonymousClientConfig(s.host.Config)
	config.BearerToken = token
	stranger, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = stranger.CoreV1().Namespaces().Get(t.Context(), metav1.NamespaceDefault, metav1.GetOptions{})
	require.True(t, apierrors.IsUnauthorized(err), "the host answers the token with %v", err)
}
