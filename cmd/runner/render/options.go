package render

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/syncpass/syncpass/policy"
)

// Form is what carries out the passes.
type Form string

// The forms.
const (
	// CronJob starts a Job whenever the policy's interval is over, as far as cron can say it.
	CronJob Form = "cronjob"
	// Job makes one pass.
	Job Form = "job"
	// Schedule is a Deployment that stays.
	Schedule Form = "schedule"
	// Sharded is a CronJob whose Pods split all tenants of the host.
	Sharded Form = "sharded"
)

// Forms are all forms, in the order in which a person is told of them.
var Forms = []Form{CronJob, Job, Schedule, Sharded}

// SystemNamespace is where the sharded form is, where nothing else is said.
const SystemNamespace = "syncpass-system"

// Setting is a variable of the runner's environment.
type Setting struct{ Name, Value string }

// Options say what to render.
type Options struct {
	Form Form
	// Namespace is that of the TenantCluster and all its mirrors; for the sharded form, where the runners are.
	Namespace string
	// Tenant is the name of the TenantCluster; empty for the sharded form, which is about all.
	Tenant string
	// Policies are the tenant's one, or those of all tenants.
	Policies []*policy.SyncPolicy
	// TenantNamespaces are where the sharded form's tenants are.
	TenantNamespaces []string
	// Shards is into how many parts the sharded form splits the tenants, at least 1.
	Shards int
	// Image is what the Pods run.
	Image string
	// KubeconfigSecrets are the names that the Secret with the tenant's kubeconfig may have.
	KubeconfigSecrets []string
	// Settings are the variables that differ from their defaults, in the order in which they are to stand.
	Settings []Setting
	// RequestTimeout, LeaseDuration and PassTimeout are what these settings come to.
	RequestTimeout, LeaseDuration, PassTimeout time.Duration
	// Resource is how the host serves a kind; false where that is not known. Nil: it is known of none.
	Resource func(schema.GroupVersionKind) (name string, known bool)
}

// digested is what an image's name ends in if it can only mean one image.
var digested = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[^\s@]+@sha256:[0-9a-f]{64}$`) })

// imageName is what the name of an image may consist of: a registry, a path, a tag.
var imageName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._/:-]*$`) })

// CheckImage says what is wrong with the name of an image. One without a digest may mean another image tomorrow, and on
// another node; it is taken where that is allowed.
func CheckImage(image string, allowTag bool) error {
	switch {
	case digested().MatchString(image):
		return nil
	case !imageName().MatchString(image):
		return fmt.Errorf("%q is no name of an image; accepted: registry/name@sha256:…, or with --allow-tag registry/name:tag", image)
	case !allowTag:
		return fmt.Errorf("image %q has no digest, so it may mean another image tomorrow: name it as registry/name@sha256:… (see `docker buildx imagetools inspect` or `skopeo inspect`), or give --allow-tag", image)
	}
	return nil
}

// check says what is missing: the caller has validated what people give.
func (o Options) check() error {
	switch {
	case !slices.Contains(Forms, o.Form):
		return fmt.Errorf("there is no form %q", o.Form)
	case o.Namespace == "" || len(o.Policies) == 0:
		return fmt.Errorf("a namespace and a policy are needed")
	case o.Form != Sharded && (o.Tenant == "" || len(o.Policies) != 1):
		return fmt.Errorf("form %s is for one tenant and its policy", o.Form)
	case o.Form == Sharded && (o.Tenant != "" || o.Shards < 1):
		return fmt.Errorf("form %s is for all tenants, split into at least one part", o.Form)
	}
	for _, p := range o.Policies {
		if problems := validation.IsDNS1123Subdomain(p.Name); len(problems) > 0 {
			return fmt.Errorf("the right to read the SyncPolicy is for its name, and metadata.name is %q: %s", p.Name, strings.Join(problems, ", "))
		}
	}
	return nil
}

// schedule is the policies' together: the shortest interval of those that are not paused.
func (o Options) schedule() policy.Schedule {
	var all policy.Schedule
	for _, p := range o.Policies {
		s := p.Schedule()
		switch {
		case !s.Enabled && !all.Enabled && (all.Interval == 0 || s.Interval < all.Interval):
			all.Interval = s.Interval // for when it is resumed
		case s.Enabled && (!all.Enabled || s.Interval < all.Interval):
			all = s
		}
	}
	return all
}

// name is that of all namespaced objects. The tenant's is part of it, since a namespace can have several.
func (o Options) name() string {
	if o.Form == Sharded {
		return "syncpass"
	}
	return withPrefix("syncpass-", o.Tenant)
}

// clusterName is that of the cluster-scoped objects. No namespace and no tenant has a colon in its name, so no two
// tenants share one. (RBAC's objects may have it: https://kubernetes.io/docs/concepts/overview/working-with-objects/names/#path-segment-names)
func (o Options) clusterName(what string) string {
	if o.Form == Sharded {
		return "syncpass:" + what
	}
	return "syncpass:" + o.Namespace + ":" + o.Tenant
}

// maxName is how long a CronJob's name may be, to which its Jobs' names add a time.
const maxName = 52

// withPrefix is a name made of another. One that is too long, or has dots, which the username of a ServiceAccount is
// better without (manifests/isolation/admission looks at it), ends in a digest instead.
func withPrefix(prefix, name string) string {
	if len(prefix)+len(name) <= maxName && !strings.Contains(name, ".") {
		return prefix + name
	}
	digest := sha256.Sum256([]byte(name))
	end := "-" + strings.ToLower(base32.StdEncoding.EncodeToString(digest[:10]))
	plain := strings.ReplaceAll(name, ".", "-")
	return prefix + strings.TrimRight(plain[:min(len(plain), maxName-len(prefix)-len(end))], "-") + end
}
