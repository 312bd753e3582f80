package metrics

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/push"
	dto "github.com/prometheus/client_model/go"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// job is the group's first label.
	job = "syncpass"
	// pushesAtOnce bounds how many tenants' metrics are on their way side by side.
	pushesAtOnce = 4
)

// ParseGateway reads the address of a Pushgateway: an http or https URL, perhaps with a user and password, perhaps with a
// path.
func ParseGateway(address string) (*url.URL, error) {
	gateway, err := url.Parse(address)
	switch {
	case err != nil:
		return nil, errors.New("is no URL") // the parser's own words repeat the address, with the password in it
	case gateway.Scheme != "http" && gateway.Scheme != "https":
		return nil, errors.New("is no http or https URL")
	case gateway.Hostname() == "":
		return nil, errors.New("names no host")
	case gateway.RawQuery != "" || gateway.Fragment != "":
		return nil, errors.New("has a query or a fragment")
	}
	return gateway, nil
}

// Push sends the metrics of each tenant to a Pushgateway, grouped by job, namespace and tenant. What it does not send
// stays there as it was: after a pass that failed, when the last one succeeded. What is counted for the process as a
// whole is not sent, since it would be the sum over an arbitrary set of tenants. All failures are joined.
func (m *Metrics) Push(ctx context.Context, gateway *url.URL, tenants []types.NamespacedName) error {
	families, err := m.registry.Gather()
	if err != nil {
		return fmt.Errorf("gathering the metrics: %w", err)
	}
	address := *gateway
	address.User = nil // an error names the address
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	errs := make([]error, len(tenants))
	var group errgroup.Group
	group.SetLimit(pushesAtOnce)
	for i, tenant := range tenants {
		its := of(tenant, families)
		if len(its) == 0 {
			continue
		}
		group.Go(func() error {
			pusher := push.New(address.String(), job).Client(client).
				Grouping("namespace", tenant.Namespace).Grouping("tenant", tenant.Name).
				Gatherer(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) { return its, nil }))
			if gateway.User != nil {
				password, _ := gateway.User.Password()
				pusher.BasicAuth(gateway.User.Username(), password)
			}
			if err := pusher.AddContext(ctx); err != nil {
				errs[i] = fmt.Errorf("pushing the metrics of %s: %w", tenant, err)
			}
			return nil
		})
	}
	_ = group.Wait() // the goroutines return no error
	return errors.Join(errs...)
}

// of are the metrics of one tenant, without the labels that say so: a group has them already.
func of(tenant types.NamespacedName, families []*dto.MetricFamily) []*dto.MetricFamily {
	var found []*dto.MetricFamily
	for _, family := range families {
		var its []*dto.Metric
		for _, metric := range family.Metric {
			var rest []*dto.LabelPair
			named := map[string]string{}
			for _, label := range metric.Label {
				if slices.Contains(ofTenant, label.GetName()) {
					named[label.GetName()] = label.GetValue()
				} else {
					rest = append(rest, label)
				}
			}
			if len(named) == len(ofTenant) && named["namespace"] == tenant.Namespace && named["tenant"] == tenant.Name {
				its = append(its, &dto.Metric{
					Label: rest, Counter: metric.Counter, Gauge: metric.Gauge, Histogram: metric.Histogram,
				})
			}
		}
		if len(its) > 0 {
			found = append(found, &dto.MetricFamily{Name: family.Name, Help: family.Help, Type: family.Type, Metric: its})
		}
	}
	return found
}
