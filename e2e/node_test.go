package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/syncpass/syncpass/e2e/node"
	"github.com/syncpass/syncpass/e2e/scenario"
)

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
                image: docker.io/local/syncpass:e2e
                imagePullPolicy: Never
                args: [version]
                securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  - expect: {host: [{has: {apiVersion: v1, kind: Pod, metadata: {namespace: team-dev, name: version}, status: {phase: Succeeded}}}], within: 60s}
`

func TestTheRunnerRunsFromItsImageOnANode(t *testing.T) {
	s := nodeSuite(t)
	binary, err := s.build()
	require.NoError(t, err)
	require.NoError(t, s.node.ImportImage(s.context(t), node.RunnerImage("docker.io/local/syncpass:e2e", binary)))
	file, err := scenario.Parse([]byte(onTheNode))
	require.NoError(t, err)
	require.NoError(t, s.runner(t).Run(s.context(t), file))
}
