package access

import (
	"bytes"
	"cmp"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// MaxKubeconfigBytes bounds a tenant's kubeconfig: the largest that a Secret can hold.
const MaxKubeconfigBytes = 1 << 20

// The fields of a kubeconfig that are used, and those that change nothing here. Whatever is in neither list is refused,
// what later versions of client-go may bring included.
var (
	usedClusterFields = []string{"server", "certificate-authority-data"}
	idleClusterFields = []string{"disable-compression", "extensions"}
	usedUserFields    = []string{"token", "client-certificate-data", "client-key-data"}
	idleUserFields    = []string{"extensions"}
)

// refusals give the reason and the next step for the fields that people do use.
var refusals = map[string]string{
	"certificate-authority":    "it names a file: put the certificate itself in certificate-authority-data",
	"insecure-skip-tls-verify": "anyone on the way could pose as the server: put its CA in certificate-authority-data",
	"proxy-url":                "the connection must be direct: remove it",
	"tls-server-name":          "the server's certificate must be valid for the host in server: remove it",

	"exec":               "it would run a program here: use a token, or client-certificate-data and client-key-data",
	"auth-provider":      "it would run a plugin here: use a token, or client-certificate-data and client-key-data",
	"tokenFile":          "it names a file: put the token itself in token",
	"client-certificate": "it names a file: put the certificate itself in client-certificate-data",
	"client-key":         "it names a file: put the key itself in client-key-data",
	"username":           "API servers take no passwords: use a token, or client-certificate-data and client-key-data",
	"password":           "API servers take no passwords: use a token, or client-certificate-data and client-key-data",
	"as":                 "no impersonation: use the credentials of the user that is meant",
	"as-uid":             "no impersonation: use the credentials of the user that is meant",
	"as-groups":          "no impersonation: use the credentials of the user that is meant",
	"as-user-extra":      "no impersonation: use the credentials of the user that is meant",
}

// kubeconfig is the file format (k8s.io/client-go/tools/clientcmd/api/v1), with the two parts that are judged field by
// field left as they are.
type kubeconfig struct {
	APIVersion     string `json:"apiVersion"`
	Kind           string `json:"kind"`
	CurrentContext string `json:"current-context"`
	Contexts       []struct {
		Name    string `json:"name"`
		Context struct {
			Cluster string `json:"cluster"`
			User    string `json:"user"`
		} `json:"context"`
	} `json:"contexts"`
	Clusters []struct {
		Name    string         `json:"name"`
		Cluster map[string]any `json:"cluster"`
	} `json:"clusters"`
	Users []struct {
		Name string         `json:"name"`
		User map[string]any `json:"user"`
	} `json:"users"`
}

// ParseTenantKubeconfig makes a client configuration out of a kubeconfig that is not trusted. Of its current context it
// takes the server, the CA data, and a token or a client certificate with its key, and builds a new configuration of
// these alone. Any other field that is set (a program to run, a file to read, a proxy, a user to impersonate…) is
// refused by name rather than dropped, since without it the credentials would mean something else. Without CA data the
// system's roots are trusted. Contexts other than the current one are not looked at.
//
// The error is a *ConfigError with all problems found. It does not say which kubeconfig it is about: its source is the
// caller's to name.
func ParseTenantKubeconfig(data []byte) (*rest.Config, error) {
	file, err := decodeKubeconfig(data)
	if err != nil {
		return nil, &ConfigError{Problems: []error{err}}
	}
	p := &parser{}
	config := p.config(file)
	if len(p.problems) > 0 {
		return nil, &ConfigError{Problems: p.problems}
	}
	return config, nil
}

func decodeKubeconfig(data []byte) (*kubeconfig, error) {
	switch {
	case len(bytes.TrimSpace(data)) == 0:
		return nil, errors.New("it is empty: put the whole kubeconfig there")
	case len(data) > MaxKubeconfigBytes:
		return nil, fmt.Errorf("it has %d bytes, at most %d are read: leave one cluster, user and context in it", len(data), MaxKubeconfigBytes)
	}
	asJSON, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		return nil, fmt.Errorf("it is no YAML: %w", err)
	}
	if !bytes.HasPrefix(asJSON, []byte("{")) {
		return nil, errors.New("it is no kubeconfig: expected a YAML mapping with clusters, users, contexts and current-context")
	}
	file := &kubeconfig{}
	// As clientcmd does: field names are case-sensitive. encoding/json would take Exec for exec.
	if err := kjson.UnmarshalCaseSensitivePreserveInts(asJSON, file); err != nil {
		return nil, fmt.Errorf("it is no kubeconfig: %w", err)
	}
	if (file.Kind != "" && file.Kind != "Config") || (file.APIVersion != "" && file.APIVersion != "v1") {
		return nil, fmt.Errorf("it is no kubeconfig: expected apiVersion v1 and kind Config, got %s and %s", quote(file.APIVersion), quote(file.Kind))
	}
	return file, nil
}

// parser collects problems instead of stopping at the first.
type parser struct {
	problems []error
}

func (p *parser) addf(format string, args ...any) {
	p.problems = append(p.problems, fmt.Errorf(format, args...))
}

// config builds the configuration. It is complete only if no problems were added.
func (p *parser) config(file *kubeconfig) *rest.Config {
	names := make([]string, 0, len(file.Contexts))
	for _, c := range file.Contexts {
		names = append(names, c.Name)
	}
	if file.CurrentContext == "" {
		p.addf("no current-context: set it to %s", oneOf(names))
		return nil
	}
	i, ok := p.find("context", file.CurrentContext, names)
	if !ok {
		return nil
	}
	chosen := file.Contexts[i].Context

	config := &rest.Config{
		// What the server asks of its client in response headers is not logged: a tenant could fill the log with it.
		WarningHandler: rest.NoWarnings{},
		// A small answer on the wire must be a small answer in memory.
		DisableCompression: true,
		// Nil would mean the proxy of the environment, which the operator set for other connections than these.
		Proxy: func(*http.Request) (*url.URL, error) { return nil, nil },
		Dial:  tenantDialer.DialContext,
	}
	names = names[:0]
	for _, c := range file.Clusters {
		names = append(names, c.Name)
	}
	if i, ok := p.find("cluster", chosen.Cluster, names); ok {
		p.cluster(config, fields{parser: p, owner: "cluster " + quote(chosen.Cluster), values: file.Clusters[i].Cluster})
	}
	names = names[:0]
	for _, u := range file.Users {
		names = append(names, u.Name)
	}
	if i, ok := p.find("user", chosen.User, names); ok {
		p.user(config, fields{parser: p, owner: "user " + quote(chosen.User), values: file.Users[i].User})
	}
	return config
}

// find returns where name is, which must be once.
func (p *parser) find(kind, name string, names []string) (int, bool) {
	i := slices.Index(names, name)
	switch {
	case name == "":
		p.addf("the current context names no %s: set it to %s", kind, oneOf(names))
	case i < 0:
		p.addf("%s %s is not in it: it has %s", kind, quote(name), oneOf(names))
	case slices.Contains(names[i+1:], name):
		p.addf("%s %s is in it more than once: keep one", kind, quote(name))
	default:
		return i, true
	}
	return 0, false
}

func (p *parser) cluster(config *rest.Config, f fields) {
	f.refuseOthers(usedClusterFields, idleClusterFields)
	server, err := f.text("server")
	if err == nil {
		err = checkServer(server)
	}
	f.add(err)
	config.Host = server

	config.CAData, err = f.data("certificate-authority-data")
	if err == nil && len(config.CAData) > 0 {
		// The same check as later, under the name of the field.
		if _, err = rest.TLSConfigFor(&rest.Config{TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData}}); err != nil {
			err = fmt.Errorf("field certificate-authority-data: %w", err)
		}
	}
	f.add(err)
}

func (p *parser) user(config *rest.Config, f fields) {
	refused := f.refuseOthers(usedUserFields, idleUserFields)
	token, tokenErr := f.text("token")
	token = strings.TrimSpace(token)
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		tokenErr = errors.New("field token holds white space or characters that are not ASCII: put the token there as it was issued")
	}
	cert, certErr := f.data("client-certificate-data")
	key, keyErr := f.data("client-key-data")
	f.add(tokenErr, certErr, keyErr)
	config.BearerToken, config.CertData, config.KeyData = token, cert, key

	switch {
	case tokenErr != nil || certErr != nil || keyErr != nil:
		// What is broken is neither missing nor there.
	case (len(cert) > 0) != (len(key) > 0):
		f.add(errors.New("client-certificate-data and client-key-data must both be there"))
	case len(cert) > 0:
		if _, err := tls.X509KeyPair(cert, key); err != nil {
			f.add(fmt.Errorf("client-certificate-data and client-key-data: %w", err))
		}
	case token == "" && !refused:
		f.add(errors.New("no credentials: add a token, or client-certificate-data and client-key-data"))
	}
}

// fields are those of one cluster or user.
type fields struct {
	*parser
	owner  string
	values map[string]any
}

// add adds the problems that there are, under the name of the cluster or user.
func (f fields) add(errs ...error) {
	for _, err := range errs {
		if err != nil {
			f.addf("%s: %w", f.owner, err)
		}
	}
}

// refuseOthers adds a problem for each field that is set and in neither list, and says whether there was one.
func (f fields) refuseOthers(used, idle []string) bool {
	refused := false
	for _, name := range slices.Sorted(maps.Keys(f.values)) {
		if !isSet(f.values[name]) || slices.Contains(used, name) || slices.Contains(idle, name) {
			continue
		}
		reason := cmp.Or(refusals[name], "it is not one of "+strings.Join(used, ", ")+": remove it")
		f.add(fmt.Errorf("field %s is not allowed: %s", plain(name), reason))
		refused = true
	}
	return refused
}

// isSet says whether a field says anything: some tools write all fields, most of them empty.
func isSet(value any) bool {
	switch v := value.(type) {
	case nil:
		return false
	case string:
		return v != ""
	case bool:
		return v
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

// text returns a field of type string, "" where it is not set.
func (f fields) text(name string) (string, error) {
	switch v := f.values[name].(type) {
	case nil:
		return "", nil
	case string:
		return v, nil
	}
	return "", fmt.Errorf("field %s must be a string: put it in quotes", name)
}

// data returns a field of type base64, nil where it is not set. What surrounds PEM data is cut off, so that a line break
// more or less makes no other credential.
func (f fields) data(name string) ([]byte, error) {
	text, err := f.text(name)
	if err != nil || text == "" {
		return nil, err
	}
	data, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("field %s is not base64: %w", name, err)
	}
	return bytes.TrimSpace(data), nil
}

// checkServer says what is wrong with the address of a tenant's API server. It does not repeat the address, which may
// hold a password.
func checkServer(server string) error {
	u, err := url.Parse(server)
	switch {
	case server == "":
		return errors.New("server is not set: put https://host:port there")
	case err != nil:
		return errors.New("server is no URL: expected https://host:port")
	case u.Scheme != "https":
		return errors.New("server must begin with https://, for credentials go there")
	case u.User != nil:
		return errors.New("server must not hold a user or password: use a token, or client-certificate-data and client-key-data")
	case u.Hostname() == "" || u.Opaque != "":
		return errors.New("server names no host: expected https://host:port")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(server, "#"):
		return errors.New("server must not hold a query or fragment: expected https://host:port, with a path at most")
	}
	return nil
}

// tenantDialer opens the connections to tenants. The check comes after name resolution, so that a name cannot evade it.
var tenantDialer = &net.Dialer{
	Timeout:   10 * time.Second,
	KeepAlive: 30 * time.Second,
	Control: func(_, address string, _ syscall.RawConn) error {
		if to, err := netip.ParseAddrPort(address); err == nil && to.Addr().Unmap().IsLinkLocalUnicast() {
			return fmt.Errorf("%s is a link-local address, where clouds serve credentials to their own machines, and no tenant's API server", to.Addr())
		}
		return nil
	},
}

// credentialOf returns what Cluster.Credential does.
func credentialOf(config *rest.Config) []byte {
	// Both are text, so a NUL cannot occur in them.
	return slices.Concat([]byte(config.BearerToken), []byte{0}, config.KeyData)
}

// oneOf names what there is to choose from.
func oneOf(names []string) string {
	if len(names) == 0 {
		return "one, of which there are none yet"
	}
	quoted := make([]string, 0, len(names))
	for _, n := range names[:min(len(names), maxProblems)] {
		quoted = append(quoted, quote(n))
	}
	if len(names) > maxProblems {
		quoted = append(quoted, "…")
	}
	return strings.Join(quoted, ", ")
}

// plain returns a field's name as it is if it looks like one, else quoted.
func plain(name string) string {
	if q := quote(name); q != `"`+name+`"` {
		return q
	}
	return name
}
