package e2e

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/syncpass/syncpass/e2e/proxy"
	"github.com/syncpass/syncpass/record"
)

// unknown is what a pass decides when it could not read the ConfigMaps: nothing about any of them.
func unknown() map[string]string {
	return map[string]string{"": "Skip KindUnavailable", "made": "", "pushed": "", "pulled": "", "gone": ""}
}

var bothSides = []record.Side{record.Tenant, record.Host}

// faultsOfReads are refusals and silence where a pass wants to read.
func faultsOfReads() []fault {
	var rows []fault
	for _, side := range bothSides {
		add := func(f fault) {
			f.name = fmt.Sprintf("%s on the %s", f.name, side)
			rows = append(rows, f)
		}
		list := func(handlers ...http.Handler) func(*testing.T, *duePlace) {
			return answer(side, proxy.Before, listing("configmaps"), handlers...)
		}
		failed := fmt.Sprintf("listing it on the %s failed", side)
		refusal := func(code int, reason metav1.StatusReason) http.Handler { return proxy.Status(code, reason, "no") }
		trouble := refusal(http.StatusInternalServerError, metav1.StatusReasonInternalError)

		add(fault{name: "F12 429 on a list is obeyed", spoil: list(tooMany("1"), nil)})
		add(fault{name: "F12 429 in words on a list is tried again a little later", spoil: list(upTo(2, tooMany("soon"))...)})
		add(fault{name: "F12 429 for a day on a list", exit: 3, within: 12 * time.Second, spoil: list(tooMany("86400")), decisions: unknown(), says: []string{failed}})
		add(fault{name: "F13 500 twice on a list", spoil: list(upTo(2, trouble)...)})
		add(fault{name: "F13 500 for ever on a list", exit: 3, spoil: list(trouble), decisions: unknown(), says: []string{failed}})
		add(fault{name: "F13 503 that asks for a moment on a list", spoil: list(unavailable("1"), nil)})
		add(fault{name: "F14 403 on one kind", exit: 3, spoil: list(refusal(http.StatusForbidden, metav1.StatusReasonForbidden)), decisions: unknown(), says: []string{failed}})
		add(fault{name: "F14 401 on a list", exit: 7, nothing: true, spoil: list(refusal(http.StatusUnauthorized, metav1.StatusReasonUnauthorized))})
		add(fault{name: "F15 404 on a list", exit: 3, spoil: list(proxy.Body(http.StatusNotFound, "text/plain", []byte("404 page not found\n"))), decisions: unknown(), says: []string{failed}})
		add(fault{name: "F33 a list that hangs", exit: 7, nothing: true, env: quick, within: 12 * time.Second, spoil: list(proxy.Hang)})
		add(fault{name: "F33 a list byte for byte", exit: 7, nothing: true, env: quick, within: 12 * time.Second,
			spoil: list(proxy.Drip([]byte(emptyList("", "1")), 100*time.Millisecond))})
		add(fault{name: "F45 a list whose connection is reset", exit: 7, nothing: true, spoil: list(proxy.Drop)})
		add(fault{name: "F45 every answer is followed by a GOAWAY", spoil: func(_ *testing.T, p *duePlace) {
			p.proxyOf(side).SetFilter(func(_ proxy.Request, a proxy.Answer) http.Handler { return proxy.GoAway(a) })
		}})
	}
	return append(rows,
		fault{name: "F04 nobody says whether a tenant object is gone", exit: 3, says: []string{"asking the tenant whether the object is gone"},
			spoil:     answer(record.Tenant, proxy.Before, writing(record.Tenant, http.MethodGet, "gone"), proxy.Drop),
			decisions: map[string]string{"gone": "Skip Rejected"}},
		fault{name: "F15 404 of a proxy for a tenant object that is to be gone", exit: 3, says: []string{"asking the tenant whether the object is gone"},
			spoil: answer(record.Tenant, proxy.Before, writing(record.Tenant, http.MethodGet, "gone"),
				proxy.Body(http.StatusNotFound, "text/html", []byte("<html>not here</html>"))),
			decisions: map[string]string{"gone": "Skip Rejected"}},
	)
}

// emptyList is a list of ConfigMaps without any, which goes on with a token.
func emptyList(token, version string) string {
	return fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":%q,"continue":%q},"items":[]}`, version, token)
}

// altered makes a side's lists of ConfigMaps arrive changed, in JSON.
func altered(side record.Side, change func(p *duePlace, list object)) func(*testing.T, *duePlace) {
	return func(t *testing.T, p *duePlace) {
		p.proxyOf(side).SetFilter(func(r proxy.Request, a proxy.Answer) http.Handler {
			if !listing("configmaps")(p, r) || a.Status != http.StatusOK {
				return nil
			}
			return inJSON(t, a, func(list object) { change(p, list) })
		})
	}
}

// alteredItem makes one ConfigMap of a side arrive changed, in lists and by itself.
func alteredItem(side record.Side, name string, change func(item object)) func(*testing.T, *duePlace) {
	return func(t *testing.T, p *duePlace) {
		p.proxyOf(side).SetFilter(func(r proxy.Request, a proxy.Answer) http.Handler {
			switch {
			case a.Status != http.StatusOK:
				return nil
			case listing("configmaps")(p, r):
				return inJSON(t, a, func(list object) {
					item, _ := p.itemOf(list, side, name)
					change(item)
				})
			case writing(side, http.MethodGet, name)(p, r):
				return inJSON(t, a, change)
			}
			return nil
		})
	}
}

// inJSON is an answer after a change, in JSON, which an API server may give where protobuf was asked for.
func inJSON(t *testing.T, a proxy.Answer, change func(object)) http.Handler {
	content := object{}
	if strings.HasPrefix(a.Header.Get("Content-Type"), runtime.ContentTypeProtobuf) {
		list, _, err := metadataCodecs.UniversalDeserializer().Decode(a.Body, nil, nil)
		if assert.NoError(t, err) {
			content, err = runtime.DefaultUnstructuredConverter.ToUnstructured(list)
			assert.NoError(t, err)
			content["apiVersion"], content["kind"] = "meta.k8s.io/v1", "PartialObjectMetadataList"
		}
	} else {
		assert.NoError(t, utiljson.Unmarshal(a.Body, &content))
	}
	change(content)
	data, err := utiljson.Marshal(content)
	assert.NoError(t, err)
	return proxy.Body(http.StatusOK, "application/json", data)
}

var metadataCodecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	utilruntime.Must(metav1.AddMetaToScheme(scheme))
	return serializer.NewCodecFactory(scheme)
}()

// itemOf is a ConfigMap of the place in a list, and its index.
func (p *duePlace) itemOf(list object, side record.Side, name string) (object, int) {
	for i, item := range list["items"].([]any) {
		metadata := item.(object)["metadata"].(object)
		if metadata["namespace"] == p.name && metadata["name"] == p.at(side, name) {
			return item.(object), i
		}
	}
	return nil, -1
}

// without takes an item out of a list; one that is on another page (-1) is not in it.
func without(list object, index int) {
	if index < 0 {
		return
	}
	items := list["items"].([]any)
	list["items"] = append(items[:index:index], items[index+1:]...)
}

// faultsOfLists are lists that are not what they seem.
func faultsOfLists() []fault {
	var rows []fault
	for _, side := range bothSides {
		add := func(f fault) {
			f.name = fmt.Sprintf("%s on the %s", f.name, side)
			rows = append(rows, f)
		}
		broken := func(quietly bool) func(*testing.T, *duePlace) {
			return func(_ *testing.T, p *duePlace) {
				p.proxyOf(side).SetFilter(func(r proxy.Request, a proxy.Answer) http.Handler {
					if !listing("configmaps")(p, r) {
						return nil
					}
					return proxy.Cut(a.Body, quietly)
				})
			}
		}
		add(fault{name: "F45 a list cut in the middle", exit: 7, nothing: true, spoil: broken(false)})
		add(fault{name: "F45 a list shorter than its Content-Length", exit: 7, nothing: true, spoil: broken(true)})

		body := func(contentType, text string) func(*testing.T, *duePlace) {
			return answer(side, proxy.Before, listing("configmaps"), proxy.Body(http.StatusOK, contentType, []byte(text)))
		}
		for name, spoil := range map[string]func(*testing.T, *duePlace){
			"a Status":                     body("application/json", `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success"}`),
			"a list of another kind":       body("application/json", strings.ReplaceAll(emptyList("", "1"), "ConfigMapList", "SecretList")),
			"a page of a proxy":            body("text/html", "<html><body>please log in</body></html>"),
			"an empty answer":              body("application/json", ""),
			"a list without version":       altered(side, func(_ *duePlace, list object) { delete(list["metadata"].(object), "resourceVersion") }),
			"a list without items":         altered(side, func(_ *duePlace, list object) { delete(list, "items") }),
			"a list whose items are null":  altered(side, func(_ *duePlace, list object) { list["items"] = nil }),
			"a list whose items are a map": altered(side, func(_ *duePlace, list object) { list["items"] = object{} }),
		} {
			add(fault{name: "F46 200 with " + name, exit: 3, spoil: spoil, decisions: unknown(), says: []string{"the answer is no complete list of the kind"}})
		}
		for name, change := range map[string]func(p *duePlace, list object){
			"the same twice": func(p *duePlace, list object) {
				item, _ := p.itemOf(list, side, "kept")
				list["items"] = append(list["items"].([]any), item)
			},
			"no name": func(p *duePlace, list object) {
				item, _ := p.itemOf(list, side, "kept")
				delete(item["metadata"].(object), "name")
			},
			"a name that is a path": func(p *duePlace, list object) {
				item, _ := p.itemOf(list, side, "kept")
				item["metadata"].(object)["name"] = "../secrets/x"
			},
			"a namespace that cannot be": func(p *duePlace, list object) {
				item, _ := p.itemOf(list, side, "kept")
				item["metadata"].(object)["namespace"] = "Not/One"
			},
			"something that is no object": func(_ *duePlace, list object) { list["items"] = append(list["items"].([]any), "x") },
		} {
			add(fault{name: "F47 a list with " + name, exit: 3, spoil: altered(side, change), decisions: unknown(), says: []string{"the answer is no complete list of the kind"}})
		}

		page := func(handlers ...http.Handler) func(*testing.T, *duePlace) {
			return func(t *testing.T, p *duePlace) {
				p.proxyOf(side).SetQuery(func(path string, query url.Values) {
					if strings.HasSuffix(path, "/configmaps") {
						query.Set("limit", "3")
					}
				})
				answer(side, proxy.Before, func(p *duePlace, r proxy.Request) bool {
					return listing("configmaps")(p, r) && strings.Contains(r.Query, "continue=")
				}, handlers...)(t, p)
			}
		}
		expired := proxy.Status(http.StatusGone, metav1.StatusReasonExpired, "the provided continue parameter is too old",
			func(s *metav1.Status, _ http.Header) { s.Continue = "token-of-the-410" })
		neverThat := func(t *testing.T, _ *duePlace, spoilt spoiltPass) {
			t.Helper()
			for _, r := range spoilt.requests {
				assert.NotContains(t, r.Query, "token-of-the-410", "it continues with the tail of a newer state")
			}
		}
		add(fault{name: "F09 410 in the middle of a list", spoil: page(expired, nil), check: neverThat})
		add(fault{name: "F09 410 in the middle of every list", exit: 3, spoil: page(expired), check: neverThat, decisions: unknown()})
		add(fault{name: "F10 the second page of a list fails", exit: 3, decisions: unknown(),
			spoil: page(proxy.Status(http.StatusInternalServerError, metav1.StatusReasonInternalError, "no"))})
		add(fault{name: "F10 the second page of a list is lost", exit: 7, nothing: true, spoil: page(proxy.Drop)})
		add(fault{name: "F10 a list in many pages, none of them lost", spoil: page(nil)})

		endless := func(next func(page int) string) func(*testing.T, *duePlace) {
			return func(_ *testing.T, p *duePlace) {
				pages := make(chan int, 1)
				pages <- 0
				p.proxyOf(side).SetHook(func(m proxy.Moment, r proxy.Request) http.Handler {
					if m != proxy.Before || !listing("configmaps")(p, r) {
						return nil
					}
					n := <-pages
					pages <- n + 1
					return proxy.Body(http.StatusOK, "application/json", []byte(emptyList(next(n), "1")))
				})
			}
		}
		add(fault{name: "F11 a list that continues with itself", exit: 3, decisions: unknown(), spoil: endless(func(int) string { return "again" }),
			says: []string{"it continues with the same page for ever"}})
		add(fault{name: "F11 a list that never ends", exit: 3, decisions: unknown(), within: time.Minute, spoil: endless(func(n int) string { return fmt.Sprint(n) }),
			says: []string{"it goes on after"}})
	}
	return append(rows,
		fault{name: "F16 an old list of the tenant lacks an object", says: []string{"its counterpart is there again, so nothing is deleted"},
			spoil: altered(record.Tenant, func(p *duePlace, list object) {
				_, index := p.itemOf(list, record.Tenant, "kept")
				without(list, index)
			}),
			decisions: map[string]string{"kept": "Skip Raced"}},
		fault{name: "F16 an old list of the host lacks a mirror",
			spoil: altered(record.Host, func(p *duePlace, list object) {
				_, index := p.itemOf(list, record.Host, "kept")
				without(list, index)
			}),
			decisions: map[string]string{"kept": "Skip Raced"}},
		fault{name: "F16 an old list of the host has a mirror as it was",
			spoil:     alteredItem(record.Host, "pushed", func(item object) { item["metadata"].(object)["resourceVersion"] = "1" }),
			decisions: map[string]string{"pushed": "Skip Raced"}},
		fault{name: "F44 an object whose labels are no strings", exit: 3, says: []string{"metadata.labels is no map of strings"},
			spoil:     alteredItem(record.Tenant, "pushed", func(item object) { item["metadata"].(object)["labels"] = object{"k": 7} }),
			decisions: map[string]string{"pushed": "Skip Rejected"}},
		fault{name: "F44 an object that is another kind's", exit: 3, says: []string{"it says that it is a"},
			spoil:     alteredItem(record.Tenant, "pushed", func(item object) { item["kind"] = "Secret" }),
			decisions: map[string]string{"pushed": "Skip Rejected"}},
		fault{name: "F47 the host lists what is in another namespace", exit: 3, decisions: unknown(),
			spoil: altered(record.Host, func(p *duePlace, list object) {
				item, _ := p.itemOf(list, record.Host, "kept")
				item["metadata"].(object)["namespace"] = "kube-system"
			})},
	)
}
