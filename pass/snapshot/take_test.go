package snapshot_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/syncpass/syncpass/pass/plan"
	"github.com/syncpass/syncpass/pass/snapshot"
	"github.com/syncpass/syncpass/policy"
	"github.com/syncpass/syncpass/record"
)

func TestBothSidesAreReadCompletely(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = pages(
		configMapList("1", item("default", "one"), item("other", "one")), configMapList("2", item("default", "two")), configMapList("", item("default", "three")))
	s.host.lists[hostConfigMaps] = pages(configMapList("", item("team-dev", "mirror")))
	taken := s.take(t)
	require.Equal(t, "uid-of-tenant", taken.TenantUID)
	tenant, host := names(taken.Kinds[0])
	require.Equal(t, []string{"default/one", "other/one", "default/two", "default/three"}, tenant)
	require.Equal(t, []string{"team-dev/mirror"}, host)
	for _, kind := range taken.Kinds {
		require.Empty(t, kind.Unavailable)
		require.Empty(t, kind.Error)
		require.False(t, kind.Retired)
	}
	require.Equal(t, s.request.Resources[0], taken.Kinds[0].Resource)
	require.Equal(t, "v1", taken.Kinds[0].Tenant[0].GetAPIVersion(), "items of a list come without their kind")
	require.Equal(t, "ConfigMap", taken.Kinds[0].Tenant[0].GetKind())
}

// A mirror that was listed before its source can only look orphaned if the source is really gone.
func TestTheHostIsListedBeforeTheTenant(t *testing.T) {
	s := newSides(t)
	s.host.lists[hostConfigMaps] = pages(configMapList("1", item("team-dev", "one")), configMapList("", item("team-dev", "two")))
	s.take(t)
	for kind, want := range map[string][]string{
		"configmaps": {"host GET " + hostConfigMaps, "host GET " + hostConfigMaps + " continue=1", "tenant GET " + tenantConfigMaps},
		"widgets":    {"host GET " + hostWidgets, "tenant GET " + tenantWidgets},
	} {
		require.Equal(t, want, s.log.of(kind))
	}
}

func TestAListWhoseSnapshotExpiresIsBegunAnew(t *testing.T) {
	s := newSides(t)
	round := 0
	s.tenant.lists[tenantConfigMaps] = func(query url.Values) (int, string) {
		switch {
		case query.Get("continue") == "":
			round++
			return http.StatusOK, configMapList("1", item("default", fmt.Sprint("round-", round)))
		case round == 1:
			// A real server sends a token along, which would continue with the tail of a newer state.
			code, _ := refuses(http.StatusGone, metav1.StatusReasonExpired)(query)
			return code, `{"kind":"Status","apiVersion":"v1","metadata":{"continue":"of-the-410"},"status":"Failure","reason":"Expired","code":410}`
		}
		return http.StatusOK, configMapList("", item("default", "last"))
	}
	tenant, _ := names(s.take(t).Kinds[0])
	require.Equal(t, []string{"default/round-2", "default/last"}, tenant)
	require.Empty(t, s.log.of("of-the-410"))
}

func TestAListThatExpiresForEverIsUnavailable(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = func(query url.Values) (int, string) {
		if query.Get("continue") == "" {
			return http.StatusOK, configMapList("1", item("default", "one"))
		}
		return refuses(http.StatusGone, metav1.StatusReasonExpired)(query)
	}
	kind := s.take(t).Kinds[0]
	require.NotEmpty(t, kind.Unavailable)
	require.Empty(t, kind.Tenant)
	require.Len(t, s.log.of(tenantConfigMaps), 8, "four times two pages, and no more")
}

// Whatever is not a complete list of the kind leaves the kind unknown: on either side, and without a word about the
// other kinds.
func TestWhatIsNoCompleteListIsNoEmptyOne(t *testing.T) {
	good := configMapList("", item("team-dev", "good"))
	for name, answer := range map[string]handler{
		"a Status with code 200":             always(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`),
		"a list of another kind":             always(`{"kind":"SecretList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`),
		"a list of another version":          always(`{"kind":"ConfigMapList","apiVersion":"v2","metadata":{"resourceVersion":"9"},"items":[]}`),
		"a generic List":                     always(`{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[]}`),
		"an object":                          always(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`),
		"items null":                         always(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":null}`),
		"items absent":                       always(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"}}`),
		"items that are no list":             always(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":{}}`),
		"no resourceVersion":                 always(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{},"items":[]}`),
		"no metadata":                        always(`{"kind":"ConfigMapList","apiVersion":"v1","items":[]}`),
		"a page of a proxy":                  always(`<html>please log in</html>`),
		"nothing":                            always(``),
		"JSON that breaks off":               always(good[:len(good)-3]),
		"two lists":                          always(good + good),
		"null":                               always(`null`),
		"an item without a name":             always(configMapList("", item("team-dev", ""))),
		"an item without a namespace":        always(configMapList("", item("", "app"))),
		"an item in a namespace with a path": always(configMapList("", item("a/../b", "app"))),
		"an item with a path for a name":     always(configMapList("", item("team-dev", "../secrets/x"))),
		"an item that is no object":          always(configMapList("", `"app"`)),
		"an item that is null":               always(configMapList("", `null`)),
		"an item whose metadata is a text":   always(configMapList("", `{"metadata":"x"}`)),
		"an item twice":                      always(configMapList("", item("team-dev", "one"), item("team-dev", "one"))),
		"an item again on the next page":     pages(configMapList("1", item("team-dev", "one")), configMapList("", item("team-dev", "one"))),
		"the same page for ever":             always(configMapList("1")),
		"two pages in turn for ever": func(query url.Values) (int, string) {
			if query.Get("continue") == "1" {
				return http.StatusOK, configMapList("2", item("team-dev", "one"))
			}
			return http.StatusOK, configMapList("1", item("team-dev", "two"))
		},
		"a second page that is refused": func(query url.Values) (int, string) {
			if query.Get("continue") == "1" {
				return refuses(http.StatusForbidden, metav1.StatusReasonForbidden)(query)
			}
			return http.StatusOK, configMapList("1", item("team-dev", "one"))
		},
		"a second page that is no list": pages(configMapList("1", item("team-dev", "one")), `{"kind":"Status","apiVersion":"v1"}`),
		"a refusal":                     refuses(http.StatusForbidden, metav1.StatusReasonForbidden),
		"a kind that is gone":           refuses(http.StatusNotFound, metav1.StatusReasonNotFound),
		"a method that is not allowed":  refuses(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed),
	} {
		for _, side := range []string{"host", "tenant"} {
			t.Run(name+"/on the "+side, func(t *testing.T) {
				s := newSides(t)
				s.host.lists[hostConfigMaps] = always(good)
				s.tenant.lists[tenantConfigMaps] = always(configMapList("", item("default", "good")))
				if side == "host" {
					s.host.lists[hostConfigMaps] = answer
				} else {
					s.tenant.lists[tenantConfigMaps] = answer
				}
				taken := s.take(t)
				kind := taken.Kinds[0]
				require.Contains(t, kind.Unavailable, "on the "+side+" failed")
				require.NotEmpty(t, kind.Error)
				require.Empty(t, kind.Tenant)
				require.Empty(t, kind.Host)
				require.Empty(t, kind.Malformed)
				require.Empty(t, taken.Kinds[1].Unavailable, "the other kinds go on")
			})
		}
	}
}

// The next page is asked for while one is taken in. What is wrong with that one is told, and nobody waits for the next.
func TestAPageThatSpoilsTheListEndsTheRequestForTheNext(t *testing.T) {
	s := newSides(t)
	tested := make(chan struct{})
	defer close(tested)
	s.tenant.lists[tenantConfigMaps] = func(query url.Values) (int, string) {
		if query.Get("continue") == "" {
			return http.StatusOK, configMapList("1", item("default", "a"), item("default", "a"))
		}
		<-tested
		return http.StatusOK, configMapList("", item("default", "b"))
	}
	require.Contains(t, s.take(t).Kinds[0].Error, `item "default/a" is there twice`)
}

func TestAListOfTheHostNamespaceHoldsNothingElse(t *testing.T) {
	s := newSides(t)
	s.host.lists[hostConfigMaps] = always(configMapList("", item("team-prod", "app")))
	require.Contains(t, s.take(t).Kinds[0].Error, "team-prod")
}

// A tenant object whose metadata breaks the rules exists: it keeps its mirror, and costs no other object anything.
func TestAMalformedTenantObjectIsKeptByName(t *testing.T) {
	broken := func(metadata, rest string) string {
		return fmt.Sprintf(`{"metadata":{"namespace":"default","name":"bad",%s}%s}`, metadata, rest)
	}
	for name, item1 := range map[string]string{
		"no UID":                          broken(`"resourceVersion":"5"`, ""),
		"no resourceVersion":              broken(`"uid":"u"`, ""),
		"a UID that is a number":          broken(`"uid":7,"resourceVersion":"5"`, ""),
		"labels that are no map":          broken(`"uid":"u","resourceVersion":"5","labels":["a"]`, ""),
		"a label that is a number":        broken(`"uid":"u","resourceVersion":"5","labels":{"a":7}`, ""),
		"an annotation that is an object": broken(`"uid":"u","resourceVersion":"5","annotations":{"a":{}}`, ""),
		"a deletionTimestamp of no time":  broken(`"uid":"u","resourceVersion":"5","deletionTimestamp":"soon"`, ""),
		"a deletionTimestamp of no text":  broken(`"uid":"u","resourceVersion":"5","deletionTimestamp":7`, ""),
		"a kind of its own":               broken(`"uid":"u","resourceVersion":"5"`, `,"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1"`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSides(t)
			s.tenant.lists[tenantConfigMaps] = always(configMapList("", item("default", "good"), item1))
			kind := s.take(t).Kinds[0]
			require.Empty(t, kind.Unavailable)
			tenant, _ := names(kind)
			require.Equal(t, []string{"default/good"}, tenant)
			require.Contains(t, kind.Malformed, types.NamespacedName{Namespace: "default", Name: "bad"})

			// On the host, where nobody is to be mistrusted but nothing may be guessed either, the kind is not touched.
			s = newSides(t)
			s.host.lists[hostConfigMaps] = always(configMapList("", strings.Replace(item1, `"default"`, `"team-dev"`, 1)))
			require.NotEmpty(t, s.take(t).Kinds[0].Unavailable)
		})
	}
}

func TestAnItemsOwnAPIVersionIsNotBelieved(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = always(configMapList("", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ConfigMap","metadata":{"namespace":"default","name":"app","uid":"u","resourceVersion":"5"}}`))
	require.Equal(t, "v1", s.take(t).Kinds[0].Tenant[0].GetAPIVersion())
}

func TestKindsThatCannotCrossAreUnavailable(t *testing.T) {
	s := newSides(t)
	s.request.Resources = []policy.Resource{
		{APIVersion: "example.com/v1", Kind: "Gadget"}, {APIVersion: "example.com/v1", Kind: "Unknown"}, {APIVersion: "example.com/v2", Kind: "Widget"},
		{APIVersion: "v1", Kind: "Binding"}, {APIVersion: "v1", Kind: "Pod"}, {APIVersion: "v1", Kind: "ConfigMap"},
	}
	taken := s.take(t)
	for i, want := range []string{"is cluster-scoped", "does not serve", "does not serve", "does not let", "does not serve", ""} {
		require.Contains(t, taken.Kinds[i].Unavailable, want)
		require.Equal(t, want == "", taken.Kinds[i].Unavailable == "")
		require.Empty(t, taken.Kinds[i].Error, "what is not served was not refused")
	}
}

func TestAKindThatOneSideDoesNotServe(t *testing.T) {
	for _, side := range []string{"host", "tenant", "host, asked for all", "tenant, asked for all"} {
		s := newSides(t)
		side, all := strings.CutSuffix(side, ", asked for all")
		without := s.tenant
		if side == "host" {
			without = s.host
		}
		if all {
			s.request.Resources = append(s.request.Resources, policy.Resource{APIVersion: "broken.example.com/v1", Kind: "Thing"})
		}
		without.others["/apis"] = always(`{"kind":"APIGroupList","apiVersion":"v1","groups":[]}`)
		without.others["/apis/example.com/v1"] = refuses(http.StatusNotFound, metav1.StatusReasonNotFound)
		taken := s.take(t)
		require.Contains(t, taken.Kinds[1].Unavailable, "the "+side+" does not serve example.com/v1")
		require.Empty(t, taken.Kinds[0].Unavailable)
		require.Empty(t, s.log.of("widgets"), "what cannot cross is not read")
	}
}

// A broken aggregated API spoils its own group only, and what it serves is unknown rather than gone.
func TestPartialDiscoverySpoilsOneGroup(t *testing.T) {
	s := newSides(t)
	s.request.Resources = append(s.request.Resources, policy.Resource{APIVersion: "broken.example.com/v1", Kind: "Thing"})
	s.tenant.others["/apis/broken.example.com/v1"] = refuses(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable)
	taken := s.take(t)
	require.Contains(t, taken.Kinds[2].Unavailable, "the tenant could not tell what broken.example.com/v1 serves")
	require.Empty(t, taken.Kinds[0].Unavailable)
	require.Empty(t, taken.Kinds[1].Unavailable)
}

// So does one that is asked by itself.
func TestABrokenAPISpoilsItsOwnKinds(t *testing.T) {
	for name, answer := range map[string]handler{
		"it is down":               refuses(http.StatusNotAcceptable, metav1.StatusReasonNotAcceptable),
		"it answers with nonsense": always("<html>"),
		"it answers for another":   always(`{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"example.com/v1","resources":[]}`),
		"it answers with a Status": always(`{"kind":"Status","apiVersion":"v1","status":"Success"}`),
	} {
		t.Run(name, func(t *testing.T) {
			s := newSides(t)
			s.request.Resources = []policy.Resource{s.request.Resources[0], {APIVersion: "broken.example.com/v1", Kind: "Thing", Direction: policy.ToHost}}
			s.tenant.others["/apis/broken.example.com/v1"] = answer
			taken := s.take(t)
			require.Contains(t, taken.Kinds[1].Unavailable, "the tenant could not tell what broken.example.com/v1 serves")
			require.Empty(t, taken.Kinds[0].Unavailable)
			require.Empty(t, s.log.of("GET /apis "), "no more is asked than the policy's kinds take")
		})
	}
}

func TestASideThatCannotBeReadAtAllIsUnreachable(t *testing.T) {
	for _, test := range []struct {
		name string
		lay  func(s *sides)
		want record.Side
	}{
		{"no host", func(s *sides) { s.host.server.Close() }, record.Host},
		{"no tenant", func(s *sides) { s.tenant.server.Close() }, record.Tenant},
		{"a tenant that refuses the credentials", func(s *sides) {
			s.tenant.lists[tenantConfigMaps] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}, record.Tenant},
		{"a host that refuses the credentials", func(s *sides) {
			s.host.lists[hostConfigMaps] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}, record.Host},
		{"a tenant that refuses discovery", func(s *sides) {
			s.tenant.others["/api/v1"] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}, record.Tenant},
		{"a tenant that forbids discovery", func(s *sides) {
			s.tenant.others["/api/v1"] = refuses(http.StatusForbidden, metav1.StatusReasonForbidden)
		}, record.Tenant},
		{"a tenant that refuses discovery of all", func(s *sides) {
			s.request.Resources = append(s.request.Resources, policy.Resource{APIVersion: "broken.example.com/v1", Kind: "Thing"})
			s.tenant.others["/api"] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
			s.tenant.others["/apis"] = refuses(http.StatusUnauthorized, metav1.StatusReasonUnauthorized)
		}, record.Tenant},
		{"a tenant that redirects", func(s *sides) {
			s.tenant.lists[tenantConfigMaps] = func(url.Values) (int, string) { return http.StatusTemporaryRedirect, "" }
		}, record.Tenant},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSides(t)
			test.lay(s)
			_, _, err := snapshot.Take(t.Context(), s.request)
			var unreachable *snapshot.UnreachableError
			require.ErrorAs(t, err, &unreachable)
			require.Equal(t, test.want, unreachable.Side)
			require.Contains(t, err.Error(), "reading the "+string(test.want))
		})
	}
}

func TestTheTenantsIdentity(t *testing.T) {
	for _, test := range []struct {
		name   string
		answer handler
		want   string
	}{
		{"is the UID of its kube-system namespace", nil, "uid-of-tenant"},
		{"is unknown where it has none", refuses(http.StatusNotFound, metav1.StatusReasonNotFound), ""},
		{"is unknown where it may not be read", refuses(http.StatusForbidden, metav1.StatusReasonForbidden), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSides(t)
			if test.answer != nil {
				s.tenant.others["/api/v1/namespaces/kube-system"] = test.answer
			}
			require.Equal(t, test.want, s.take(t).TenantUID)
		})
	}
}

func TestARetiredKindIsReadOnTheHostOnly(t *testing.T) {
	s := newSides(t)
	s.request.Resources = s.request.Resources[:1]
	s.request.Retired = []schema.GroupKind{{Group: "example.com", Kind: "Widget"}}
	s.host.lists[hostWidgets] = always(`{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{"resourceVersion":"9"},"items":[` + item("team-dev", "w") + `]}`)
	taken := s.take(t)
	require.True(t, taken.Kinds[1].Retired)
	require.Equal(t, "example.com/v1", taken.Kinds[1].Resource.APIVersion)
	_, host := names(taken.Kinds[1])
	require.Equal(t, []string{"team-dev/w"}, host)
	require.Empty(t, s.log.of("tenant GET "+tenantWidgets))
}

func TestARetiredKindThatTheHostDoesNotServeHasNoMirrors(t *testing.T) {
	s := newSides(t)
	s.request.Retired = []schema.GroupKind{{Group: "gone.example.com", Kind: "Widget"}}
	taken, _, err := snapshot.Take(t.Context(), s.request)
	require.NoError(t, err)
	require.False(t, slices.ContainsFunc(taken.Kinds, func(k plan.KindSnapshot) bool { return k.Retired }))
}

func TestAskingForManyKindsKeepsTheirOrder(t *testing.T) {
	s := newSides(t)
	slices.Reverse(s.request.Resources)
	taken := s.take(t)
	require.Equal(t, "Widget", taken.Kinds[0].Resource.Kind)
	require.Equal(t, "ConfigMap", taken.Kinds[1].Resource.Kind)
}

// A page that is too large for one answer is asked for in smaller ones: a few large objects are no attack.
func TestLargeObjectsAreReadInSmallerPages(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = func(query url.Values) (int, string) {
		if query.Get("limit") == "500" {
			return tooLarge, ""
		}
		return pages(configMapList("1", item("default", "one")), configMapList("", item("default", "two")))(query)
	}
	tenant, _ := names(s.take(t).Kinds[0])
	require.Equal(t, []string{"default/one", "default/two"}, tenant)
}

func TestAnObjectThatIsTooLargeByItselfMakesItsKindUnavailable(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = func(url.Values) (int, string) { return tooLarge, "" }
	taken := s.take(t)
	require.Contains(t, taken.Kinds[0].Error, "too large")
	require.Empty(t, taken.Kinds[1].Unavailable)
	require.Len(t, s.log.of(tenantConfigMaps), 4)
}

func TestARefusalIsToldInTheServersWords(t *testing.T) {
	s := newSides(t)
	s.tenant.lists[tenantConfigMaps] = func(url.Values) (int, string) {
		return http.StatusForbidden, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","code":403,"message":"configmaps is forbidden: User \"syncpass\" cannot list resource"}`
	}
	require.Equal(t, `configmaps is forbidden: User "syncpass" cannot list resource`, s.take(t).Kinds[0].Error)
}
