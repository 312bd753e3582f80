package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBinariesAreTakenFromTheFirstPlaceThatHasThem(t *testing.T) {
	tests := []struct {
		name string
		// what each place holds before, and what download and build would add
		assets, builds, envtest, offered []string
		unreachable                      bool
		want                             map[string]string // binary -> place
		wantDownloads                    int
		wantBuilt                        []string
	}{
		{
			name:   "KUBEBUILDER_ASSETS wins over the cache",
			assets: []string{Etcd, KubeAPIServer, KubeControllerManager},
			builds: []string{Etcd, KubeAPIServer, KubeControllerManager},
			want:   map[string]string{Etcd: "assets", KubeAPIServer: "assets", KubeControllerManager: "assets"},
		},
		{
			name:   "each file of a partial KUBEBUILDER_ASSETS is looked up by itself",
			assets: []string{Etcd},
			builds: []string{KubeAPIServer, KubeControllerManager},
			want:   map[string]string{Etcd: "assets", KubeAPIServer: "builds", KubeControllerManager: "builds"},
		},
		{
			name:    "own builds win over what setup-envtest left",
			builds:  []string{Etcd, KubeControllerManager},
			envtest: []string{Etcd, KubeAPIServer},
			want:    map[string]string{Etcd: "builds", KubeAPIServer: "envtest", KubeControllerManager: "builds"},
		},
		{
			name:          "what is nowhere is downloaded, and what the download lacks is built",
			offered:       []string{Etcd, KubeAPIServer},
			want:          map[string]string{Etcd: "envtest", KubeAPIServer: "envtest", KubeControllerManager: "builds"},
			wantDownloads: 1,
			wantBuilt:     []string{KubeControllerManager},
		},
		{
			name:          "where the download host is out of reach everything is built",
			unreachable:   true,
			want:          map[string]string{Etcd: "builds", KubeAPIServer: "builds", KubeControllerManager: "builds"},
			wantDownloads: 1,
			wantBuilt:     []string{Etcd, KubeAPIServer, KubeControllerManager},
		},
		{
			name:      "no download is tried for what no archive has",
			assets:    []string{Etcd, KubeAPIServer},
			want:      map[string]string{Etcd: "assets", KubeAPIServer: "assets", KubeControllerManager: "builds"},
			wantBuilt: []string{KubeControllerManager},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			place := func(name string) string { return filepath.Join(root, name) }
			put := func(where string, names ...string) {
				for _, name := range names {
					require.NoError(t, os.MkdirAll(place(where), 0o755))
					require.NoError(t, os.WriteFile(filepath.Join(place(where), name), nil, 0o755))
				}
			}
			put("assets", test.assets...)
			put("builds", test.builds...)
			put("envtest", test.envtest...)
			t.Setenv("KUBEBUILDER_ASSETS", place("assets"))

			var log strings.Builder
			var downloads int
			var built []string
			s := &search{
				folders: []func() string{assetsFolder, func() string { return place("builds") }, func() string { return place("envtest") }},
				lock:    filepath.Join(place("builds"), "lock"),
				log:     &log,
				download: func(context.Context) error {
					downloads++
					if test.unreachable {
						return errors.New("no such host")
					}
					put("envtest", test.offered...)
					return nil
				},
				build: func(_ context.Context, name string) error {
					built = append(built, name)
					put("builds", name)
					return nil
				},
			}
			found, err := s.find(t.Context(), ControlPlane)
			require.NoError(t, err)
			want := map[string]string{}
			for name, where := range test.want {
				want[name] = filepath.Join(place(where), name)
			}
			assert.Equal(t, want, found)
			assert.Equal(t, test.wantDownloads, downloads)
			assert.Equal(t, test.wantBuilt, built)
			assert.Equal(t, test.unreachable, strings.Contains(log.String(), "no such host"), "the log says why nothing was downloaded")
		})
	}
}

func TestAFileThatCannotRunIsNoBinary(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, Etcd), nil, 0o644))
	require.NoError(t, os.Mkdir(filepath.Join(dir, KubeAPIServer), 0o755))
	s := &search{folders: []func() string{func() string { return "" }, func() string { return dir }}}
	assert.Equal(t, ControlPlane, s.look(ControlPlane, map[string]string{}))
}

func TestAFailedBuildIsReportedWithItsBinary(t *testing.T) {
	s := &search{
		lock:     filepath.Join(t.TempDir(), "lock"),
		log:      &strings.Builder{},
		download: func(context.Context) error { return nil },
		build:    func(context.Context, string) error { return errors.New("disk full") },
	}
	_, err := s.find(t.Context(), []string{Etcd})
	assert.EqualError(t, err, "building etcd: disk full")
}

func TestOnlyOneProcessBuilds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	unlock, err := lockForBuild(t.Context(), file, &strings.Builder{})
	require.NoError(t, err)
	impatient, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err = lockForBuild(impatient, file, &strings.Builder{})
	assert.ErrorContains(t, err, "enough")
	unlock()
	unlock, err = lockForBuild(t.Context(), file, &strings.Builder{})
	require.NoError(t, err)
	unlock()
}

func TestTheNewestEnvtestDownloadOfOurMinorVersionIsUsed(t *testing.T) {
	downloads := t.TempDir()
	assert.Empty(t, envtestFolder(downloads))
	platform := runtime.GOOS + "-" + runtime.GOARCH
	for _, folder := range []string{"1.36.9-" + platform, "1.37.0-" + platform, "1.37.1-" + platform, "1.37.2-plan9-mips"} {
		require.NoError(t, os.MkdirAll(filepath.Join(downloads, "k8s", folder), 0o755))
	}
	assert.Equal(t, filepath.Join(downloads, "k8s", "1.37.1-"+platform), envtestFolder(downloads))
}

// A release of Kubernetes is one commit under two version numbers: v1.x.y of the
// main module, v0.x.y of the staging modules.
func TestTheNestedModulePinsTheVersionThatIsStamped(t *testing.T) {
	data, err := os.ReadFile("../controlplane/go.mod")
	require.NoError(t, err)
	goMod := string(data)
	assert.Contains(t, goMod, "k8s.io/kubernetes "+KubernetesVersion)
	staging := strings.Replace(KubernetesVersion, "v1.", "v0.", 1)
	var replaced int
	for line := range strings.Lines(goMod) {
		if from, to, ok := strings.Cut(strings.TrimSpace(line), " => "); ok {
			replaced++
			assert.Equal(t, from+" "+staging, to)
		}
	}
	assert.NotZero(t, replaced)
	for name, pkg := range packages {
		if name != CoreDNS {
			assert.Contains(t, goMod, "\n\t"+pkg+"\n", fmt.Sprintf("%s is a tool of the module", name))
		}
	}
}

func TestCoreDNSIsPinnedToTheVersionInItsNameAndInTheManifests(t *testing.T) {
	goMod, err := os.ReadFile("../coredns/go.mod")
	require.NoError(t, err)
	assert.Contains(t, string(goMod), "module "+packages[CoreDNS]+"\n")
	assert.Contains(t, string(goMod), "require github.com/coredns/coredns "+CoreDNSVersion+"\n")
	manifest, err := os.ReadFile("../../manifests/tenant-dns/deployment.yaml")
	require.NoError(t, err)
	assert.Contains(t, string(manifest), "image: registry.k8s.io/coredns/coredns:"+CoreDNSVersion+"\n")
}
