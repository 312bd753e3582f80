package render

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNothingIsRenderedOfHalfAnOption(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"no form":            func(o *Options) { o.Form = "pod" },
		"no namespace":       func(o *Options) { o.Namespace = "" },
		"no tenant":          func(o *Options) { o.Tenant = "" },
		"no policy":          func(o *Options) { o.Policies = nil },
		"a nameless policy":  func(o *Options) { o.Policies[0].Name = "" },
		"a policy of lines":  func(o *Options) { o.Policies[0].Name = "a\nb: c" },
		"too many policies":  func(o *Options) { o.Policies = append(o.Policies, readmePolicy()) },
		"a tenant of shards": func(o *Options) { o.Form = Sharded },
	} {
		o := optionsFor(CronJob, readmePolicy())
		change(&o)
		_, err := Manifests(o)
		assert.Error(t, err, name)
	}
}

func TestCheckImage(t *testing.T) {
	for _, tt := range []struct {
		image    string
		allowTag bool
		want     string
	}{
		{image, false, ""},
		{image, true, ""},
		{"syncpass:latest", false, "has no digest"},
		{"syncpass:latest", true, ""},
		{"registry.example.com:5000/a/b_c:v1.0", true, ""},
		{"syncpass@sha256:123", true, "is no name of an image"},
		{"syncpass: latest", true, "is no name of an image"},
		{"", true, "is no name of an image"},
	} {
		err := CheckImage(tt.image, tt.allowTag)
		if tt.want == "" {
			assert.NoError(t, err, tt.image)
		} else {
			assert.ErrorContains(t, err, tt.want, tt.image)
		}
	}
}
