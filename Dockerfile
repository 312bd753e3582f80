# Two ways to one image: nothing but a static binary, run as nobody in particular.
#
#   docker build -t syncpass .     compiles in a container; needs nothing but Docker
#   make image                     compiles on this machine; needs no registry
#
# The image needs no certificates of its own: the host's CA comes with the Pod's ServiceAccount, a tenant's with its
# kubeconfig.

FROM scratch AS base
USER 65532:65532
ENTRYPOINT ["/runner"]
LABEL org.opencontainers.image.title="syncpass" \
      org.opencontainers.image.description="Syncs a tenant's Kubernetes API server with its host cluster, one complete pass per start" \
      org.opencontainers.image.source="https://github.com/syncpass/syncpass" \
      org.opencontainers.image.licenses="Apache-2.0"

# For `make image`. It stands before the stage that compiles, so that a builder without BuildKit, which builds every stage
# up to its target, does not ask a registry for the compiler.
FROM base AS prebuilt
ARG TARGETARCH
COPY bin/linux-${TARGETARCH}/runner /runner
ARG VERSION=devel
ARG COMMIT=unknown
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${COMMIT}"

FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY cmd cmd
COPY manifests manifests
COPY pass pass
COPY policy policy
COPY record record
ARG TARGETARCH
ARG VERSION=devel
# No paths, no build id and no clock in the binary, so that building it again gives the same bytes.
RUN CGO_ENABLED=0 GOOS=linux GOARCH=${TARGETARCH} go build -trimpath \
      -ldflags "-s -w -buildid= -X main.version=${VERSION}" -o /runner ./cmd/runner

FROM base
COPY --from=build /runner /runner
ARG VERSION=devel
ARG COMMIT=unknown
LABEL org.opencontainers.image.version="${VERSION}" org.opencontainers.image.revision="${COMMIT}"
