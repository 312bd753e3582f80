package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/pod-security-admission/api"
	podsecurity "k8s.io/pod-security-admission/policy"
)

// Forbids is a kind of which not every mirror may come to the host, whatever the host's API server would take.
type Forbids interface {
	// Forbidden says why a mirror may not stand on the host as it is; nil where it may.
	Forbidden(m Mapping, mirror *unstructured.Unstructured) *Refusal
}

// Refusal is why an object does not come to the host.
type Refusal struct {
	// Message says what is the matter, and what to do.
	Message string
	// Detail names each place. It may repeat what the tenant wrote.
	Detail string
}

// PodSecurity is a level of the Pod Security Standards
// (https://kubernetes.io/docs/concepts/security/pod-security-standards/), judged by the same checks as Kubernetes' own
// admission plugin does, in their newest version. The zero value forbids nothing.
type PodSecurity struct {
	level     api.LevelVersion
	evaluator podsecurity.Evaluator
}

// NewPodSecurity takes privileged, which forbids nothing, baseline or restricted. An error says that the level is none of
// these.
func NewPodSecurity(level string) (PodSecurity, error) {
	parsed, err := api.ParseLevel(level)
	if err != nil {
		return PodSecurity{}, fmt.Errorf("the Pod Security level %q: %w", level, err)
	}
	evaluator, err := podsecurity.NewEvaluator(podsecurity.DefaultChecks(), nil)
	if err != nil {
		return PodSecurity{}, fmt.Errorf("the checks of Pod Security: %w", err)
	}
	return PodSecurity{level: api.LevelVersion{Level: parsed, Version: api.LatestVersion()}, evaluator: evaluator}, nil
}

// Level is the level's name, empty where none is set.
func (s PodSecurity) Level() string { return string(s.level.Level) }

// Forbidden holds the mirror, not the tenant's object, to the level: that is what the host would run.
func (p pod) Forbidden(m Mapping, mirror *unstructured.Unstructured) *Refusal {
	return refusePod(m, mirror.GetAnnotations(), child(mirror.Object, "spec"))
}

// refusePod says why a Pod of a tenant may not run on the host. At no level may it ask for a certificate: that would say,
// under a signature of the host's, that its holder is a ServiceAccount of the host, and no tenant has a kubelet that could
// ask for one of the tenant's instead.
func refusePod(m Mapping, annotations map[string]string, spec Content) *Refusal {
	for volume, source := range projections(spec) {
		if certificate := child(source, "podCertificate"); certificate != nil {
			return &Refusal{
				Message: "it asks for a certificate, which only the host could issue and which would make it one of the host's own; take the podCertificate source out of its volumes",
				Detail:  fmt.Sprintf("volume %q asks signer %q for a certificate", text(volume["name"]), text(certificate["signerName"])),
			}
		}
	}
	return m.Workloads.PodSecurity.judge("it", annotations, spec)
}

// permitted are those of a Pod's new debug containers that the level allows, and why the others are left out. Each is
// judged by itself, under what its Pod says for all: neither a Pod from before the level was set nor another debug
// container, which nobody can take back, stands in its way.
func (s PodSecurity) permitted(spec Content, containers []any) (allowed []any, refusal *Refusal) {
	const these = "its new debug containers"
	of := func(containers []any) Content {
		return Content{"securityContext": spec["securityContext"], "hostUsers": spec["hostUsers"], "os": spec["os"], "ephemeralContainers": containers}
	}
	var refused []any
	for _, container := range containers {
		if s.judge(these, nil, of([]any{container})) == nil {
			allowed = append(allowed, container)
		} else {
			refused = append(refused, container)
		}
	}
	if len(refused) > 0 {
		refusal = s.judge(these, nil, of(refused))
	}
	return allowed, refusal
}

func (s PodSecurity) judge(what string, annotations map[string]string, content Content) *Refusal {
	if s.evaluator == nil || s.level.Level == api.LevelPrivileged {
		return nil
	}
	var spec corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &spec); err != nil {
		return &Refusal{Message: "nobody can tell what " + what + " would run, since a field is of another type than the API's; correct it in the tenant", Detail: err.Error()}
	}
	found := podsecurity.AggregateCheckResults(s.evaluator.EvaluatePod(s.level, &metav1.ObjectMeta{Annotations: annotations}, &spec))
	if found.Allowed {
		return nil
	}
	return &Refusal{
		Message: fmt.Sprintf("the Pod Security level %s forbids %s: %s; have the Pod do without, or the host's operator allow more in SYNCPASS_POD_SECURITY",
			s.level.Level, what, found.ForbiddenReason()),
		Detail: found.ForbiddenDetail(),
	}
}
