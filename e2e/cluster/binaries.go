package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// KubernetesVersion is what a build makes; the module in e2e/controlplane pins it.
const KubernetesVersion = "v1.37.2"

// CoreDNSVersion is what a build of CoreDNS makes, the version that kubeadm installs with KubernetesVersion; the module
// in e2e/coredns pins it.
const CoreDNSVersion = "v1.14.6"

// CoreDNS names the binary. Its version is in the name, since that of the folder is Kubernetes'.
const CoreDNS = "coredns-" + CoreDNSVersion

// Binaries returns the path of each named binary. Each is looked up by itself, so
// that a folder which holds only some of them serves as far as it goes:
//
//  1. the folder KUBEBUILDER_ASSETS, if that variable is set;
//  2. syncpass/controlplane/<version> in the user's cache folder, where builds go;
//  3. syncpass/envtest there, where setup-envtest downloads to.
//
// What is in none of them is downloaded by setup-envtest where its host can be
// reached (it offers etcd and kube-apiserver), and otherwise built from the Go
// module proxy, which takes about ten minutes on two cores, once. Progress goes to
// log, a line every 15 seconds; nil drops it. Of several processes that need a
// binary, one builds it and the others wait.
func Binaries(ctx context.Context, log io.Writer, names ...string) (map[string]string, error) {
	if log == nil {
		log = io.Discard
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, fmt.Errorf("no folder to keep the control-plane binaries in: %w; set HOME or XDG_CACHE_HOME", err)
	}
	cache = filepath.Join(cache, "syncpass")
	builds := filepath.Join(cache, "controlplane", KubernetesVersion)
	downloads := filepath.Join(cache, "envtest")
	s := &search{
		folders:  []func() string{assetsFolder, func() string { return builds }, func() string { return envtestFolder(downloads) }},
		lock:     filepath.Join(builds, "lock"),
		download: func(ctx context.Context) error { return downloadEnvtest(ctx, log, downloads) },
		build:    func(ctx context.Context, name string) error { return build(ctx, log, builds, name) },
		log:      log,
	}
	return s.find(ctx, names)
}

// search looks for binaries, and gets those that are missing.
type search struct {
	// folders are asked for again at each look: a download makes its folder.
	folders []func() string
	lock    string
	// download gets what setup-envtest offers. An error means there is nothing to
	// be had from there; it is logged, and the binaries are built.
	download func(context.Context) error
	// build puts one binary into one of the folders.
	build func(ctx context.Context, name string) error
	log   io.Writer
}

// oneSearch is held by the one search of this process that gets missing binaries.
var oneSearch = make(chan struct{}, 1)

// downloadable names the binaries in the archives of setup-envtest.
var downloadable = []string{Etcd, KubeAPIServer, "kubectl"}

func (s *search) find(ctx context.Context, names []string) (map[string]string, error) {
	found := map[string]string{}
	if missing := s.look(names, found); len(missing) == 0 {
		return found, nil
	}
	// Within this process the others wait in silence: one progress report is enough.
	select {
	case oneSearch <- struct{}{}:
		defer func() { <-oneSearch }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	unlock, err := lockForBuild(ctx, s.lock, s.log)
	if err != nil {
		return nil, err
	}
	defer unlock()
	// Whoever held the lock before may have got everything that was missing.
	missing := s.look(names, found)
	if slices.ContainsFunc(missing, func(name string) bool { return slices.Contains(downloadable, name) }) {
		if err := s.download(ctx); err != nil {
			fmt.Fprintf(s.log, "nothing to download with setup-envtest here: %v\n", err)
		}
		missing = s.look(names, found)
	}
	for _, name := range missing {
		if err := s.build(ctx, name); err != nil {
			return nil, fmt.Errorf("building %s: %w", name, err)
		}
	}
	if missing = s.look(missing, found); len(missing) > 0 {
		return nil, fmt.Errorf("%s still missing after the build; remove %s and try again, or set KUBEBUILDER_ASSETS to a folder that has it",
			strings.Join(missing, ", "), filepath.Dir(s.lock))
	}
	return found, nil
}

// look adds what the folders hold to found, and returns the names they do not hold.
func (s *search) look(names []string, found map[string]string) (missing []string) {
	for _, name := range names {
		i := slices.IndexFunc(s.folders, func(folder func() string) bool {
			dir := folder()
			return dir != "" && isExecutable(filepath.Join(dir, name))
		})
		if i < 0 {
			missing = append(missing, name)
			continue
		}
		found[name] = filepath.Join(s.folders[i](), name)
	}
	return missing
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}

func assetsFolder() string { return os.Getenv("KUBEBUILDER_ASSETS") }

// envtestFolder returns the last of the folders k8s/<version>-<os>-<arch> with our
// minor version, or "".
func envtestFolder(downloads string) string {
	folders, err := filepath.Glob(filepath.Join(downloads, "k8s", fmt.Sprintf("%s.*-%s-%s",
		minorVersion(), runtime.GOOS, runtime.GOARCH)))
	if err != nil || len(folders) == 0 {
		return ""
	}
	return slices.Max(folders)
}

// minorVersion is KubernetesVersion without "v" and patch: "1.37".
func minorVersion() string {
	version := strings.TrimPrefix(KubernetesVersion, "v")
	return version[:strings.LastIndex(version, ".")]
}

// lockForBuild waits until no other process holds the lock.
func lockForBuild(ctx context.Context, file string, log io.Writer) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	stop := reportProgress(log, "waiting for another process that builds the control-plane binaries")
	defer stop()
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { lock.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("locking %s: %w", file, err), lock.Close())
		}
		select {
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("waiting for the lock %s: %w", file, context.Cause(ctx)), lock.Close())
		case <-ticker.C:
		}
	}
}
