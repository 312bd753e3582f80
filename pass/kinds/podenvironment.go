package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// injectEnvironment puts before a container's own variables what the kubelet of the tenant would have put there: the
// tenant's API server, which overrides the host's, and the Services of the Pod's namespace by their addresses on the
// host. A name that the user sets, in env or envFrom, is left to the user.
func (m Mapping) injectEnvironment(spec Content, tenant *unstructured.Unstructured) {
	var injected []variable
	if m.Workloads.APIHost != "" {
		injected = serviceVariables(ServiceAddress{Name: "kubernetes", IP: m.Workloads.APIHost,
			Ports: []ServicePort{{Name: "https", Protocol: "TCP", Port: portNumber(m.Workloads.APIPort)}}})
	}
	if asked, set := child(tenant.Object, "spec")["enableServiceLinks"]; (!set || asked == true) && m.Workloads.Services != nil {
		for _, address := range m.Workloads.Services(tenant.GetNamespace()) {
			injected = append(injected, serviceVariables(address)...)
		}
	}
	for _, list := range containerLists {
		for _, container := range entries(spec[list]) {
			m.inject(container, tenant.GetNamespace(), injected)
		}
	}
}

func (m Mapping) inject(container Content, namespace string, injected []variable) {
	taken := m.variablesOf(container, namespace)
	var env []any
	for _, one := range injected {
		if !taken[one.name] {
			env = append(env, Content{"name": one.name, "value": one.value})
		}
	}
	own, _ := container["env"].([]any)
	if env = append(env, own...); len(env) > 0 {
		container["env"] = env
	}
}

// variablesOf are the names that the user sets in a container of the tenant's.
func (m Mapping) variablesOf(container Content, namespace string) map[string]bool {
	taken := map[string]bool{}
	for _, own := range entries(container["env"]) {
		name, _ := own["name"].(string)
		taken[name] = true
	}
	for _, source := range entries(container["envFrom"]) {
		prefix, _ := source["prefix"].(string)
		for kind, field := range map[string]string{"ConfigMap": "configMapRef", "Secret": "secretRef"} {
			name, _ := child(source, field)["name"].(string)
			if name != "" && m.Workloads.Keys != nil {
				for _, key := range m.Workloads.Keys(kind, namespace, name) {
					taken[prefix+key] = true
				}
			}
		}
	}
	return taken
}

// The variables that every container is told its API server by.
const (
	apiHostVariable = "KUBERNETES_SERVICE_HOST"
	apiPortVariable = "KUBERNETES_SERVICE_PORT"
)

// Outlived says where a mirror's containers still look for the tenant's API server after that has moved: the environment of
// a Pod never changes.
func (p pod) Outlived(m Mapping, tenant, host *unstructured.Unstructured) string {
	if m.Workloads.APIHost == "" || p.Finished(tenant) {
		return ""
	}
	now := map[string]string{apiHostVariable: m.Workloads.APIHost, apiPortVariable: strconv.FormatInt(portNumber(m.Workloads.APIPort), 10)}
	for _, list := range []string{"initContainers", "containers"} {
		mirrored := map[any]Content{}
		for _, container := range entries(child(host.Object, "spec")[list]) {
			mirrored[container["name"]] = container
		}
		for _, container := range entries(child(tenant.Object, "spec")[list]) {
			own := m.variablesOf(container, tenant.GetNamespace())
			for _, one := range entries(mirrored[container["name"]]["env"]) {
				name, _ := one["name"].(string)
				was, isText := one["value"].(string)
				if is, told := now[name]; told && isText && !own[name] && was != is {
					return fmt.Sprintf("its containers were given %s=%s for the tenant's API server, which is %s now, and no running Pod's environment changes; delete it in the tenant to have it made again", name, was, is)
				}
			}
		}
	}
	return ""
}

type variable struct{ name, value string }

// serviceVariables are the variables of a Service, both as Kubernetes and as Docker links name them
// (https://kubernetes.io/docs/tutorials/services/connect-applications-service/#environment-variables).
func serviceVariables(service ServiceAddress) []variable {
	if len(service.Ports) == 0 || service.IP == "" {
		return nil
	}
	prefix := variableName(service.Name)
	first := service.Ports[0]
	list := []variable{
		{prefix + "_SERVICE_HOST", service.IP},
		{prefix + "_SERVICE_PORT", strconv.FormatInt(first.Port, 10)},
	}
	for _, port := range service.Ports {
		if port.Name != "" {
			list = append(list, variable{prefix + "_SERVICE_PORT_" + variableName(port.Name), strconv.FormatInt(port.Port, 10)})
		}
	}
	for i, port := range service.Ports {
		number := strconv.FormatInt(port.Port, 10)
		protocol := strings.ToLower(port.Protocol)
		url := protocol + "://" + address(service.IP) + ":" + number
		if i == 0 {
			list = append(list, variable{prefix + "_PORT", url})
		}
		link := prefix + "_PORT_" + number + "_" + strings.ToUpper(protocol)
		list = append(list,
			variable{link, url}, variable{link + "_PROTO", protocol},
			variable{link + "_PORT", number}, variable{link + "_ADDR", service.IP})
	}
	return list
}

// address is an IP address as a URL takes it.
func address(ip string) string {
	if strings.Contains(ip, ":") {
		return "[" + ip + "]"
	}
	return ip
}

func variableName(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }

func portNumber(port string) int64 {
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return 443
	}
	return number
}
