package plan_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/syncpass/syncpass/"

// listed is a package as `go list` describes it.
type listed struct {
	ImportPath    string
	Imports, Deps []string
}

// listing is what `go list` says of the module's packages, tests left out. It is asked once.
var listing = sync.OnceValues(func() ([]byte, error) {
	return exec.Command("go", "list", "-json=ImportPath,Imports,Deps", module+"...").Output()
})

// packages are all packages of the module by their path in it.
func packages(t *testing.T) map[string]listed {
	t.Helper()
	output, err := listing()
	require.NoError(t, err, "go list -e may tell more")
	all := map[string]listed{}
	for decoder := json.NewDecoder(bytes.NewReader(output)); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		all[strings.TrimPrefix(p.ImportPath, module)] = p
	}
}

// pure are the packages that decide, and the report, which is the same for the same record. (apimachinery itself pulls in net/http and os; what these packages import and call
// themselves is what TestDecidingReadsNoClock looks at.)
var pure = []string{"policy", "record", "pass/kinds", "pass/plan", "cmd/runner/report"}

func TestDecidingImportsNoClient(t *testing.T) {
	all := packages(t)
	for _, name := range pure {
		require.Contains(t, all, name)
		for _, dep := range all[name].Deps {
			for _, forbidden := range []string{"k8s.io/client-go/", "k8s.io/kubernetes/", "sigs.k8s.io/controller-runtime/"} {
				require.False(t, strings.HasPrefix(dep+"/", forbidden), "%s depends on %s", name, dep)
			}
		}
	}
}

// TestDecidingReadsNoClock: a plan depends on its input alone, so the packages that make it call nothing that gives
// another answer the next time.
func TestDecidingReadsNoClock(t *testing.T) {
	forbiddenImports := []string{
		"context", "crypto/rand", "log", "log/slog", "math/rand", "math/rand/v2", "net", "net/http", "os", "os/exec", "os/signal",
		"sync", "sync/atomic", "syscall", "k8s.io/apimachinery/pkg/util/rand", "k8s.io/apimachinery/pkg/util/uuid", "k8s.io/utils/clock",
	}
	forbiddenCalls := map[string][]string{
		"time":                                 {"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
		"k8s.io/apimachinery/pkg/apis/meta/v1": {"Now", "NowMicro"},
		"github.com/google/uuid":               {"New", "NewString", "NewRandom", "NewV6", "NewV7", "NewUUID"},
	}
	for _, name := range pure {
		for _, path := range sources(t, name) {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			imported := map[string]string{}
			for _, spec := range file.Imports {
				target, err := strconv.Unquote(spec.Path.Value)
				require.NoError(t, err)
				require.NotContains(t, forbiddenImports, target, "%s imports it", path)
				local := filepath.Base(target)
				if spec.Name != nil {
					local = spec.Name.Name
				} else if local == "v1" {
					local = "metav1"
				}
				imported[local] = target
			}
			ast.Inspect(file, func(node ast.Node) bool {
				if selector, ok := node.(*ast.SelectorExpr); ok {
					if from, ok := selector.X.(*ast.Ident); ok {
						require.NotContains(t, forbiddenCalls[imported[from.Name]], selector.Sel.Name, "%s uses %s.%s", path, from.Name, selector.Sel.Name)
					}
				}
				_, starts := node.(*ast.GoStmt)
				require.False(t, starts, "%s starts a goroutine", path)
				return true
			})
		}
	}
}

// sources are a package's Go files without tests and generated ones.
func sources(t *testing.T, name string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", name, "*.go"))
	require.NoError(t, err)
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return strings.HasSuffix(path, "_test.go") || strings.HasPrefix(filepath.Base(path), "zz_generated")
	})
	require.NotEmpty(t, paths)
	return paths
}

// Imports point one way: cmd → pass → {snapshot, apply, lease, access, plan, store} → {kinds, policy, record}.
func TestImportsPointOneWay(t *testing.T) {
	may := map[string][]string{
		"policy":         {},
		"record":         {},
		"record/store":   {"record"},
		"pass/kinds":     {"record"},
		"pass/plan":      {"pass/kinds", "policy", "record"},
		"pass/modeltest": {"pass/kinds", "policy", "record"}, // of tests alone
		"pass/access":    {},
		"pass/lease":     {},
		"pass/snapshot":  {"pass/access", "pass/kinds", "pass/plan", "policy", "record"},
		"pass/apply":     {"pass/access", "pass/kinds", "pass/plan", "policy", "record"},
		"pass": {
			"pass/access", "pass/apply", "pass/kinds", "pass/lease", "pass/plan", "pass/snapshot", "policy", "record", "record/store",
		},
		"manifests": {},
		"cmd/runner": {
			"cmd/runner/metrics", "cmd/runner/progress", "cmd/runner/render", "cmd/runner/report", "cmd/runner/tracing",
			"pass", "pass/access", "pass/lease", "policy", "record", "record/store",
		},
		"cmd/runner/metrics":  {"pass", "pass/access", "policy", "record"},
		"cmd/runner/progress": {"pass"},
		"cmd/runner/render":   {"manifests", "pass/kinds", "policy"},
		"cmd/runner/report":   {"pass/kinds", "policy", "record"},
		"cmd/runner/tracing":  {"pass", "pass/access", "record"},
	}
	for name, p := range packages(t) {
		allowed, known := may[name]
		if !known {
			require.True(t, strings.HasPrefix(name, "e2e"), "%s is a new package: say here what it may import", name)
			continue
		}
		for _, target := range p.Imports {
			if within, ok := strings.CutPrefix(target, module); ok {
				require.Contains(t, allowed, within, "%s must not import %s", name, within)
			}
		}
	}
}

// A pass hands back results; what becomes of them as metrics and traces is the runner's alone.
func TestOnlyTheRunnerKnowsOfMetricsAndTraces(t *testing.T) {
	for name, p := range packages(t) {
		for _, target := range p.Imports {
			if strings.HasPrefix(target, "github.com/prometheus/") {
				require.Equal(t, "cmd/runner/metrics", name, "imports %s", target)
			}
			if strings.HasPrefix(target, "go.opentelemetry.io/") {
				require.Equal(t, "cmd/runner/tracing", name, "imports %s", target)
			}
		}
	}
}

// Only main exits and reads the environment.
func TestOnlyMainExitsAndReadsTheEnvironment(t *testing.T) {
	for name := range packages(t) {
		if strings.HasPrefix(name, "cmd/") || strings.HasPrefix(name, "e2e") {
			continue
		}
		for _, path := range sources(t, name) {
			source, err := os.ReadFile(path)
			require.NoError(t, err)
			for _, forbidden := range []string{"os.Exit(", "os.Getenv(", "os.LookupEnv(", "os.Environ(", "log.Fatal", "klog.Fatal", "flag.Parse("} {
				require.NotContains(t, string(source), forbidden, path)
			}
		}
	}
}
