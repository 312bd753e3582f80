package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/node"
	"github.com/syncpass/syncpass/e2e/scenario"
)

// runnerImage is what the host's node knows the image under that importRunner makes.
const runnerImage = "docker.io/local/syncpass:e2e"

// onTheNode lets a node run the runner's image, under the restrictions of manifests/base.
const onTheNode = `
name: the runner runs from its image on a host node
needs: [host-node]
steps:
  - apply:
      host:
        - apiVersion: v1
          kind: Pod
          metadata: {namespace: team-dev, name: version}
          spec:
            restartPolicy: Never
            securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
            containers:
              - name: runner
                image: ` + runnerImage + `
                imagePullPolicy: Never
                args: [version]
                securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  - expect: {host: [{has: {apiVersion: v1, kind: Pod, metadata: {namespace: team-dev, name: version}, status: {phase: Succeeded}}}], within: 60s}
`

func TestTheRunnerRunsFromItsImageOnANode(t *testing.T) {
	s := nodeSuite(t)
	importRunner(t, s)
	file, err := scenario.Parse([]byte(onTheNode))
	require.NoError(t, err)
	require.NoError(t, s.runner(t).Run(s.context(t), file))
}

// importRunner packs the binary under test into the project's own image and gives it to the host's node.
func importRunner(t *testing.T, s *surroundings) {
	t.Helper()
	binary, err := s.build()
	require.NoError(t, err)
	require.NoError(t, s.node.ImportImage(s.context(t), node.RunnerImage(runnerImage, binary)))
}
