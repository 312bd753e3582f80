package access

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// TestMain sets the proxy of the environment, which net/http reads once: a tenant must not be reached through it.
func TestMain(m *testing.M) {
	os.Setenv("HTTPS_PROXY", "http://proxy.example:3128")
	os.Exit(m.Run())
}

// certificate returns a self-signed certificate and its key, in PEM, the same for all tests.
var certificate = sync.OnceValues(func() (cert, key []byte) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		panic(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8})
})

type object = map[string]any

// kubeconfigWith returns a kubeconfig that is accepted, with the fields of its cluster and user replaced (or removed: nil).
func kubeconfigWith(cluster, user object) []byte {
	cert, _ := certificate()
	c := object{"server": "https://tenant.example:6443", "certificate-authority-data": base64.StdEncoding.EncodeToString(cert)}
	u := object{"token": "a-token"}
	for _, merge := range []struct{ into, from object }{{c, cluster}, {u, user}} {
		for k, v := range merge.from {
			if v == nil {
				delete(merge.into, k)
				continue
			}
			merge.into[k] = v
		}
	}
	out, err := yaml.Marshal(object{
		"apiVersion": "v1", "kind": "Config", "current-context": "main",
		"contexts": []any{object{"name": "main", "context": object{"cluster": "dev", "user": "admin", "namespace": "any"}}},
		"clusters": []any{object{"name": "dev", "cluster": c}},
		"users":    []any{object{"name": "admin", "user": u}},
	})
	if err != nil {
		panic(err)
	}
	return out
}

func TestAKubeconfigGivesServerAuthorityAndCredentialsAlone(t *testing.T) {
	cert, key := certificate()
	pair := object{
		"client-certificate-data": base64.StdEncoding.EncodeToString(cert),
		"client-key-data":         base64.StdEncoding.EncodeToString(key),
	}
	for name, tt := range map[string]struct {
		cluster, user object
		token         string
		cert          []byte
	}{
		"a token":                     {token: "a-token"},
		"a token with a line break":   {user: object{"token": "a-token\n"}, token: "a-token"},
		"a client certificate":        {user: object{"token": nil, "client-certificate-data": pair["client-certificate-data"], "client-key-data": pair["client-key-data"]}, cert: bytes.TrimSpace(cert)},
		"both":                        {user: pair, token: "a-token", cert: bytes.TrimSpace(cert)},
		"forbidden fields left empty": {cluster: object{"insecure-skip-tls-verify": false, "proxy-url": "", "tls-server-name": ""}, user: object{"exec": object{}, "as-groups": []any{}, "tokenFile": ""}, token: "a-token"},
		"fields that change nothing":  {cluster: object{"disable-compression": true, "extensions": []any{object{"name": "x", "extension": object{"exec": "sh"}}}}, token: "a-token"},
	} {
		t.Run(name, func(t *testing.T) {
			config, err := ParseTenantKubeconfig(kubeconfigWith(tt.cluster, tt.user))
			require.NoError(t, err)
			assert.Equal(t, "https://tenant.example:6443", config.Host)
			assert.Equal(t, bytes.TrimSpace(cert), config.CAData)
			assert.Equal(t, tt.token, config.BearerToken)
			assert.Equal(t, tt.cert, config.CertData)
			assertHarmless(t, config)
		})
	}
}

func TestServersThatAreAccepted(t *testing.T) {
	for _, server := range []string{
		"https://10.0.0.1", "https://[fd00::1]:6443", "https://tenant.example:6443/",
		"https://kcp.example/clusters/root:org:ws", "https://rancher.example/k8s/clusters/c-m-1",
	} {
		config, err := ParseTenantKubeconfig(kubeconfigWith(object{"server": server, "certificate-authority-data": nil}, nil))
		require.NoError(t, err, server)
		assert.Equal(t, server, config.Host)
		assert.Empty(t, config.CAData, "the system's roots are trusted")
	}
}

func TestAHostileKubeconfigIsRefusedByTheNameOfTheField(t *testing.T) {
	set := func(field string, value any) object { return object{field: value} }
	for name, tt := range map[string]struct {
		cluster, user object
		want          string
	}{
		"a program":                      {user: set("exec", object{"command": "/bin/sh"}), want: `user "admin": field exec is not allowed: it would run a program here: use a token`},
		"a plugin":                       {user: set("auth-provider", object{"name": "oidc"}), want: `user "admin": field auth-provider is not allowed`},
		"a token file":                   {user: set("tokenFile", "/var/run/secrets/kubernetes.io/serviceaccount/token"), want: `user "admin": field tokenFile is not allowed: it names a file`},
		"a certificate file":             {user: set("client-certificate", "/etc/a"), want: `field client-certificate is not allowed`},
		"a key file":                     {user: set("client-key", "/etc/a"), want: `field client-key is not allowed`},
		"an authority file":              {cluster: set("certificate-authority", "/etc/a"), want: `cluster "dev": field certificate-authority is not allowed`},
		"a proxy":                        {cluster: set("proxy-url", "http://10.0.0.1"), want: `field proxy-url is not allowed`},
		"no verification":                {cluster: set("insecure-skip-tls-verify", true), want: `field insecure-skip-tls-verify is not allowed`},
		"another server's name":          {cluster: set("tls-server-name", "kubernetes.default"), want: `field tls-server-name is not allowed`},
		"impersonation":                  {user: set("as", "system:admin"), want: `field as is not allowed: no impersonation`},
		"impersonation of a UID":         {user: set("as-uid", "1"), want: `field as-uid is not allowed`},
		"impersonation of groups":        {user: set("as-groups", []any{"system:masters"}), want: `field as-groups is not allowed`},
		"impersonation with extras":      {user: set("as-user-extra", object{"a": []any{"b"}}), want: `field as-user-extra is not allowed`},
		"a user name":                    {user: set("username", "admin"), want: `field username is not allowed`},
		"a password":                     {user: set("password", "admin"), want: `field password is not allowed`},
		"a field in other case":          {user: set("Exec", object{"command": "/bin/sh"}), want: `field Exec is not allowed: it is not one of token, client-certificate-data, client-key-data: remove it`},
		"a field that nobody knows":      {cluster: set("a\nb", "x"), want: `field "a\nb" is not allowed`},
		"plain HTTP":                     {cluster: set("server", "http://tenant.example"), want: "server must begin with https://"},
		"no scheme":                      {cluster: set("server", "tenant.example:6443"), want: "server must begin with https://"},
		"no server":                      {cluster: set("server", nil), want: "server is not set"},
		"no host":                        {cluster: set("server", "https://"), want: "server names no host"},
		"only a port":                    {cluster: set("server", "https://:6443"), want: "server names no host"},
		"an opaque address":              {cluster: set("server", "https:tenant.example"), want: "server names no host"},
		"a user in the server":           {cluster: set("server", "https://me:secret@tenant.example"), want: "server must not hold a user or password"},
		"a query in the server":          {cluster: set("server", "https://tenant.example/?a=b"), want: "server must not hold a query"},
		"a fragment in the server":       {cluster: set("server", "https://tenant.example/#"), want: "server must not hold a query"},
		"a server that is no URL":        {cluster: set("server", "https://me:secret"), want: "server is no URL"},
		"a server that is a list":        {cluster: set("server", []any{"a"}), want: "field server must be a string"},
		"an authority that is no PEM":    {cluster: set("certificate-authority-data", "aGVsbG8="), want: `cluster "dev": field certificate-authority-data: `},
		"an authority that is no base64": {cluster: set("certificate-authority-data", "%%"), want: "field certificate-authority-data is not base64"},
		"a certificate that is no PEM":   {user: object{"client-certificate-data": "aGVsbG8=", "client-key-data": "aGVsbG8="}, want: `user "admin": client-certificate-data and client-key-data: `},
		"a certificate without its key":  {user: set("client-certificate-data", "aGVsbG8="), want: "must both be there"},
		"a token that is a number":       {user: set("token", 12), want: "field token must be a string"},
		"a token of two lines":           {user: set("token", "a\r\nX-Evil: b"), want: "token holds white space"},
		"no credentials":                 {user: set("token", nil), want: `user "admin": no credentials: add a token`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTenantKubeconfig(kubeconfigWith(tt.cluster, tt.user))
			var config *ConfigError
			require.ErrorAs(t, err, &config)
			assert.ErrorContains(t, err, tt.want)
			assert.Len(t, config.Problems, 1, "one fault, one message")
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "\n")
		})
	}
}

// A field that a later client-go brings is refused until somebody has decided what it is, and gives it a line here.
func TestEveryFieldThatClientGoKnowsIsUsedOrRefusedWithAReason(t *testing.T) {
	for _, tt := range []struct {
		fields     reflect.Type
		used, idle []string
		with       func(name string) []byte
	}{
		{reflect.TypeFor[clientcmdv1.Cluster](), usedClusterFields, idleClusterFields, func(name string) []byte { return kubeconfigWith(object{name: "x"}, nil) }},
		{reflect.TypeFor[clientcmdv1.AuthInfo](), usedUserFields, idleUserFields, func(name string) []byte { return kubeconfigWith(nil, object{name: "x"}) }},
	} {
		for i := range tt.fields.NumField() {
			name, _, _ := strings.Cut(tt.fields.Field(i).Tag.Get("json"), ",")
			if slices.Contains(tt.used, name) || slices.Contains(tt.idle, name) {
				continue
			}
			assert.NotEmpty(t, refusals[name], name)
			_, err := ParseTenantKubeconfig(tt.with(name))
			assert.ErrorContains(t, err, "field "+name+" is not allowed: "+refusals[name])
		}
	}
}

func TestAllFaultsOfAKubeconfigAreReportedTogether(t *testing.T) {
	_, err := NewTenant(kubeconfigWith(
		object{"server": "http://tenant.example", "proxy-url": "http://10.0.0.1"},
		object{"exec": object{"command": "sh"}, "as": "root"},
	), Options{})
	var config *ConfigError
	require.ErrorAs(t, err, &config)
	var got []string
	for _, p := range config.Problems {
		got = append(got, p.Error())
	}
	assert.Equal(t, []string{
		`cluster "dev": field proxy-url is not allowed: the connection must be direct: remove it`,
		`cluster "dev": server must begin with https://, for credentials go there`,
		`user "admin": field as is not allowed: no impersonation: use the credentials of the user that is meant`,
		`user "admin": field exec is not allowed: it would run a program here: use a token, or client-certificate-data and client-key-data`,
	}, got)
}

func TestThousandsOfFaultsMakeOneMessageOfBoundedLength(t *testing.T) {
	user := object{}
	for i := range 5000 {
		user[fmt.Sprintf("field-%04d-%s", i, strings.Repeat("x", 100))] = "y"
	}
	_, err := ParseTenantKubeconfig(kubeconfigWith(nil, user))
	require.Error(t, err)
	assert.Less(t, len(err.Error()), 8<<10)
	assert.ErrorContains(t, err, "and 4980 more")
}

func TestAFileThatIsNoUsableKubeconfigSaysWhy(t *testing.T) {
	good := string(kubeconfigWith(nil, nil))
	for name, tt := range map[string]struct{ file, want string }{
		"empty":                  {" \n", "it is empty"},
		"no YAML":                {"clusters: [", "it is no YAML"},
		"a list":                 {"- a\n- b\n", "it is no kubeconfig: expected a YAML mapping"},
		"a word":                 {"hello", "it is no kubeconfig: expected a YAML mapping"},
		"another kind":           {"apiVersion: v1\nkind: Secret\n", `it is no kubeconfig: expected apiVersion v1 and kind Config, got "v1" and "Secret"`},
		"fields of other types":  {"contexts: 7\n", "it is no kubeconfig"},
		"a key twice":            {good + "kind: Config\n", "already set in map"},
		"too large":              {good + "# " + strings.Repeat("x", MaxKubeconfigBytes), "at most 1048576 are read"},
		"no current context":     {strings.Replace(good, "current-context: main\n", "", 1), `no current-context: set it to "main"`},
		"an unknown context":     {strings.Replace(good, "current-context: main", "current-context: other", 1), `context "other" is not in it: it has "main"`},
		"an unknown cluster":     {strings.Replace(good, "cluster: dev", "cluster: other", 1), `cluster "other" is not in it: it has "dev"`},
		"an unknown user":        {strings.Replace(good, "user: admin", "user: other", 1), `user "other" is not in it: it has "admin"`},
		"a context without user": {strings.Replace(good, "user: admin", "", 1), `the current context names no user: set it to "admin"`},
		"two users of one name":  {strings.Replace(good, "users:", "users:\n- name: admin\n  user: {token: other}", 1), `user "admin" is in it more than once`},
		"no contexts at all":     {"kind: Config\napiVersion: v1\n", "no current-context: set it to one, of which there are none yet"},
		"aliases that multiply": {"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\n" +
			"d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f,*f,*f]\n", "it is no YAML"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ParseTenantKubeconfig([]byte(tt.file))
			var config *ConfigError
			require.ErrorAs(t, err, &config)
			assert.ErrorContains(t, err, tt.want)
		})
	}
}

func TestOnlyTheCurrentContextIsLookedAt(t *testing.T) {
	file := strings.Replace(string(kubeconfigWith(nil, nil)), "users:", "users:\n- name: other\n  user: {exec: {command: sh}}", 1)
	config, err := ParseTenantKubeconfig([]byte(file))
	require.NoError(t, err)
	assert.Equal(t, "a-token", config.BearerToken)
}

func TestTheCredentialChangesWithTheCredentialsAndWithNothingElse(t *testing.T) {
	cert, key := certificate()
	of := func(cluster, user object) string {
		t.Helper()
		c, err := NewTenant(kubeconfigWith(cluster, user), Options{})
		require.NoError(t, err)
		return string(c.Credential())
	}
	base := of(nil, nil)
	assert.NotEmpty(t, base)
	assert.Equal(t, base, of(object{"server": "https://elsewhere.example", "certificate-authority-data": nil}, nil), "another address is no other credential")
	assert.Equal(t, base, of(nil, object{"token": "a-token\n"}))
	assert.NotEqual(t, base, of(nil, object{"token": "b-token"}))
	pair := object{"token": nil, "client-certificate-data": base64.StdEncoding.EncodeToString(cert), "client-key-data": base64.StdEncoding.EncodeToString(key)}
	withKey := of(nil, pair)
	assert.NotEqual(t, base, withKey)
	assert.Contains(t, withKey, "PRIVATE KEY", "the certificate is public; the key is what nobody else has")
	assert.NotContains(t, withKey, "CERTIFICATE")
}

func TestALinkLocalAddressIsNotDialled(t *testing.T) {
	for _, address := range []string{"169.254.169.254:443", "[fe80::1]:443", "[::ffff:169.254.169.254]:443"} {
		_, err := tenantDialer.DialContext(context.Background(), "tcp", address)
		assert.ErrorContains(t, err, "is a link-local address", address)
	}
}

// assertHarmless asserts that the configuration does what the allowed fields say, and no more.
func assertHarmless(t *testing.T, config *rest.Config) {
	t.Helper()
	u, err := url.Parse(config.Host)
	require.NoError(t, err)
	assert.Equal(t, "https", u.Scheme)
	assert.Nil(t, u.User)
	assert.NotEmpty(t, u.Hostname())

	rebuilt := &rest.Config{
		Host: config.Host, BearerToken: config.BearerToken, WarningHandler: rest.NoWarnings{}, DisableCompression: true,
		TLSClientConfig: rest.TLSClientConfig{CAData: config.CAData, CertData: config.CertData, KeyData: config.KeyData},
	}
	bare := rest.CopyConfig(config)
	proxy, err := bare.Proxy(&http.Request{URL: u})
	assert.Nil(t, proxy, "the environment's proxy must not be asked either: Proxy is set, and says none")
	assert.NoError(t, err)
	bare.Proxy, bare.Dial = nil, nil // Functions cannot be compared.
	assert.Equal(t, rebuilt, bare)
}

// FuzzTenantKubeconfig checks that whatever is accepted is harmless, and that nothing of it was dropped silently: read
// by clientcmd, as kubectl would, the current context says no more than what was taken over.
func FuzzTenantKubeconfig(f *testing.F) {
	f.Add(kubeconfigWith(nil, nil))
	f.Add(kubeconfigWith(object{"certificate-authority-data": nil}, object{"exec": object{"command": "sh"}}))
	f.Add(kubeconfigWith(object{"insecure-skip-tls-verify": true}, object{"as": "root", "tokenFile": "/x"}))
	f.Add([]byte("current-context: a\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: [{name: a, cluster: {server: 'https://a'}}]\nusers: [{name: a, user: {token: a}}]\n"))
	f.Add([]byte(`{"current-context":"a","contexts":[{"name":"a","context":{"cluster":"a","user":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://a"}}],"users":[{"name":"a","user":{"token":"a","Exec":null}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		config, err := ParseTenantKubeconfig(data)
		if err != nil {
			var problems *ConfigError
			require.ErrorAs(t, err, &problems)
			require.NotEmpty(t, problems.Problems)
			return
		}
		assertHarmless(t, config)

		file, err := clientcmd.Load(data)
		if err != nil {
			return // Stricter than we are, which harms nobody.
		}
		current := file.Contexts[file.CurrentContext]
		require.NotNil(t, current)
		user, cluster := file.AuthInfos[current.AuthInfo], file.Clusters[current.Cluster]
		require.NotNil(t, user)
		require.NotNil(t, cluster)
		assert.Equal(t, cluster.Server, config.Host)
		assert.Equal(t, strings.TrimSpace(user.Token), config.BearerToken)
		assert.Nil(t, user.Exec)
		assert.Nil(t, user.AuthProvider)
		assert.Empty(t, user.TokenFile+user.ClientCertificate+user.ClientKey+user.Username+user.Password+user.Impersonate+user.ImpersonateUID)
		assert.Empty(t, user.ImpersonateGroups)
		assert.Empty(t, user.ImpersonateUserExtra)
		assert.Empty(t, cluster.CertificateAuthority+cluster.ProxyURL+cluster.TLSServerName)
		assert.False(t, cluster.InsecureSkipTLSVerify)
	})
}
