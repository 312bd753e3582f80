package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

const (
	modulePath       = "github.com/syncpass/syncpass"
	progressInterval = 15 * time.Second

	setupEnvtest = "sigs.k8s.io/controller-runtime/tools/setup-envtest@v0.25.1"
	// envtestIndex is where setup-envtest looks what it can download.
	envtestIndex = "https://raw.githubusercontent.com/kubernetes-sigs/controller-tools/HEAD/envtest-releases.yaml"
	// probeTimeout decides whether that host is reachable at all.
	probeTimeout    = 3 * time.Second
	downloadTimeout = 5 * time.Minute
	// interruptGrace is how long the go command may take to end its compilers.
	interruptGrace = 10 * time.Second
)

// packages names the main package of each binary of the module in e2e/controlplane, and CoreDNS, which is a module.
var packages = map[string]string{
	Etcd:                  "go.etcd.io/etcd/server/v3",
	KubeAPIServer:         "k8s.io/kubernetes/cmd/kube-apiserver",
	KubeControllerManager: "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kube-scheduler":      "k8s.io/kubernetes/cmd/kube-scheduler",
	"kubelet":             "k8s.io/kubernetes/cmd/kubelet",
	"kube-proxy":          "k8s.io/kubernetes/cmd/kube-proxy",
	"kubectl":             "k8s.io/kubernetes/cmd/kubectl",
	CoreDNS:               modulePath + "/e2e/coredns",
}

// build compiles one binary into the folder, which sees it only once it is complete.
func build(ctx context.Context, log io.Writer, dir, name string) (err error) {
	pkg, ok := packages[name]
	if !ok {
		return errors.New("not a binary of the control plane; see e2e/controlplane/go.mod")
	}
	nested, title, flags := "controlplane", name+" "+KubernetesVersion, linkerFlags()
	if name == CoreDNS {
		nested, title, flags = "coredns", name, "-s -w"
	}
	module, err := nestedModule(ctx, nested)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, "."+name+".tmp")
	defer func() {
		if err != nil {
			_ = os.Remove(temporary)
		}
	}()
	fmt.Fprintf(log, "building %s from the Go module proxy, once, into %s; all of the control plane takes about 10 minutes on two cores\n",
		title, dir)
	defer reportProgress(log, "building "+name)()
	// The flags on the command line win over GOFLAGS: go.mod and go.sum stay as checked in.
	cmd := goCommand(ctx, "build", "-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags="+flags, "-o", temporary, pkg)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH)
	if err := runQuietly(cmd); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, name))
}

// linkerFlags leaves symbols out and stamps the version: kube-apiserver serves it
// at /version, where clients compare it.
func linkerFlags() string {
	major, minor, _ := strings.Cut(minorVersion(), ".")
	flags := []string{"-s", "-w"}
	for _, pkg := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		for _, stamp := range []string{"gitVersion=" + KubernetesVersion, "gitMajor=" + major, "gitMinor=" + minor, "gitTreeState=clean"} {
			flags = append(flags, "-X", pkg+"."+stamp)
		}
	}
	return strings.Join(flags, " ")
}

// ModuleDir returns the folder of the checkout that the current directory lies in.
func ModuleDir(ctx context.Context) (string, error) {
	cmd := goCommand(ctx, "list", "-m", "-f", "{{.Dir}}", modulePath)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := runQuietly(cmd); err != nil {
		return "", fmt.Errorf("looking for the folder of module %s, whose checkout this must run in: %w", modulePath, err)
	}
	return strings.TrimSpace(out.String()), nil
}

// nestedModule finds the folder of e2e whose module pins what is to be built.
func nestedModule(ctx context.Context, name string) (string, error) {
	root, err := ModuleDir(ctx)
	if err != nil {
		return "", fmt.Errorf("%w; or set KUBEBUILDER_ASSETS", err)
	}
	dir := filepath.Join(root, "e2e", name)
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return "", fmt.Errorf("the module that pins what is to be built is missing: %w; run from inside a checkout, or set KUBEBUILDER_ASSETS", err)
	}
	return dir, nil
}

// downloadEnvtest lets setup-envtest put etcd and kube-apiserver into its folder.
func downloadEnvtest(ctx context.Context, log io.Writer, downloads string) error {
	if err := reachable(ctx, envtestIndex); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, downloadTimeout)
	defer cancel()
	defer reportProgress(log, "downloading etcd and kube-apiserver with setup-envtest")()
	cmd := goCommand(ctx, "run", setupEnvtest, "use", "--bin-dir", downloads, "--print", "path", minorVersion()+".x")
	// Flags meant for this module, -mod above all, do not fit a package at a version.
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off")
	return runQuietly(cmd)
}

func reachable(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, url, nil)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, response.Status)
	}
	return nil
}

// goCommand ends with the context: by an interrupt, upon which the go command
// stops its compilers and removes its temporary files.
func goCommand(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	return cmd
}

// runQuietly runs a command, whose error output becomes part of the error.
func runQuietly(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args[:2], " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// reportProgress writes a line with the elapsed seconds at every interval, until
// it is stopped.
func reportProgress(log io.Writer, what string) (stop func()) {
	start, done, ended := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(progressInterval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				fmt.Fprintf(log, "%s: %d s\n", what, int(time.Since(start).Seconds()))
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}
