#!/usr/bin/env bash
# `npm test -- kubernetes-server`: applies deploy/kubernetes to a real API server with --dry-run=server. Unlike the
# schemas of `npm test -- kubernetes`, it knows the custom resources and runs admission. No node and no
# controller runs. It builds the API server and kubectl from their Go module, once, which takes half an hour on
# two processors and 4 GB of disk, so it is not part of `npm run check`. It needs Go 1.26 and etcd (Debian:
# `etcd-server`). The last line is `N passed, N failed`, counted in resources.
set -euo pipefail
cd "$(dirname "$0")/../../.."

KUBERNETES=1.37.2
# Their modules have the definitions of the custom resources.
ECK=github.com/elastic/cloud-on-k8s/v3@v3.5.0
PROMETHEUS_OPERATOR=github.com/prometheus-operator/prometheus-operator@v0.85.0
# Timeouts in seconds: of the build, and of the start of both servers.
BUILD_SECONDS=5400
START_SECONDS=120

source scripts/cache.sh
programs=$cache/kubernetes-$KUBERNETES

scratch=$(mktemp -d "$cache/kubernetes-server-XXXXXX")
servers=()
finish() {
  trap '' TERM INT HUP
  ((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true
  wait
  rm -rf "$scratch"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

fail() {
  echo "$1" >&2
  exit 1
}

for program in go etcd openssl; do
  command -v "$program" >/dev/null || fail "$program is not on the PATH"
done

# Modules and objects are deleted after the build, unless GOPATH and GOCACHE are set.
export GOPATH=${GOPATH:-$scratch/modules} GOCACHE=${GOCACHE:-$scratch/objects} GOFLAGS='-modcacherw -mod=mod' GOTOOLCHAIN=local

# folder_of MODULE: downloads a Go module, and prints its folder.
folder_of() {
  go mod download -json "$1" | sed -n 's/^\s*"Dir": "\(.*\)",$/\1/p'
}

# build FOLDER: builds kube-apiserver and kubectl. Their module replaces others by folders that it does not contain,
# so a module of our own replaces them by what is published.
build() {
  local source version=k8s.io/component-base/version
  mkdir "$scratch/build" "$scratch/programs"
  source=$(folder_of "k8s.io/kubernetes@v$KUBERNETES")
  {
    echo 'module dry-run'
    grep -E '^(go|godebug) ' "$source/go.mod"
    echo "require k8s.io/kubernetes v$KUBERNETES"
    sed -nE "s|^\s*(k8s.io/[a-z-]+) => ./staging/.*|replace \1 => \1 v0.${KUBERNETES#1.}|p" "$source/go.mod"
  } >"$scratch/build/go.mod"
  (
    cd "$scratch/build"
    for name in kube-apiserver kubectl; do
      CGO_ENABLED=0 timeout "$BUILD_SECONDS" go build -trimpath -o "$scratch/programs/$name" \
        -ldflags "-s -w -X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=1 -X $version.gitMinor=${KUBERNETES:2:2}" \
        "k8s.io/kubernetes/cmd/$name"
    done
  )
  cp "$(folder_of "$ECK")"/config/crds/v1/resources/elasticsearch.k8s.elastic.co_elasticsearches.yaml \
    "$(folder_of "$PROMETHEUS_OPERATOR")"/example/prometheus-operator-crd/*_{servicemonitors,prometheusrules}.yaml \
    "$scratch/programs"
  mv -T "$scratch/programs" "$1"
}

if [ ! -d "$programs" ]; then
  echo "Building kube-apiserver and kubectl $KUBERNETES (once, half an hour) …"
  build "$programs"
fi

# free_ports COUNT
free_ports() {
  python3 -c 'import socket, sys
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(int(sys.argv[1]))]
print(*(one.getsockname()[1] for one in sockets))' "$1"
}
read -r etcd_port peer_port server_port < <(free_ports 3)

etcd --data-dir "$scratch/etcd" --listen-client-urls "http://127.0.0.1:$etcd_port" \
  --advertise-client-urls "http://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$peer_port" \
  --initial-advertise-peer-urls "http://127.0.0.1:$peer_port" --initial-cluster "default=http://127.0.0.1:$peer_port" \
  >"$scratch/etcd.log" 2>&1 &
servers+=($!)

openssl genrsa -out "$scratch/service-accounts.pem" 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,administrator,1,system:masters" >"$scratch/tokens.csv"
"$programs/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd_port" --bind-address 127.0.0.1 \
  --secure-port "$server_port" --cert-dir "$scratch/certificates" --token-auth-file "$scratch/tokens.csv" \
  --authorization-mode RBAC --service-cluster-ip-range 10.0.0.0/24 --service-account-issuer https://127.0.0.1 \
  --service-account-key-file "$scratch/service-accounts.pem" \
  --service-account-signing-key-file "$scratch/service-accounts.pem" >"$scratch/server.log" 2>&1 &
servers+=($!)

# Only this server, whatever the configuration of the user says.
kubectl() {
  KUBECONFIG=$scratch/none "$programs/kubectl" --server "https://127.0.0.1:$server_port" --insecure-skip-tls-verify \
    --token "$token" "$@"
}

for ((i = 0; ; i++)); do
  kubectl get --raw /readyz >/dev/null 2>&1 && break
  if ((i == START_SECONDS)) || ! kill -0 "${servers[@]}" 2>/dev/null; then
    tail -n 5 "$scratch/etcd.log" "$scratch/server.log" >&2
    fail 'the API server does not start; the end of both logs is above'
  fi
  sleep 1
done

for definition in "$programs"/*.yaml; do
  kubectl apply --server-side -f "$definition" >/dev/null
done
kubectl wait --for condition=Established --timeout "${START_SECONDS}s" customresourcedefinitions --all >/dev/null

passed=0
failures=()
for folder in deploy/kubernetes/base deploy/kubernetes/overlays/*; do
  if ! kubectl kustomize "$folder" >"$scratch/resources.yaml" 2>"$scratch/errors"; then
    failures+=("${folder##*/}: $(<"$scratch/errors")")
    continue
  fi
  # A dry run does not create the namespace that the other resources need.
  kubectl create namespace registry-search >/dev/null 2>&1 || true
  status=0
  kubectl apply --server-side --force-conflicts --dry-run=server -f "$scratch/resources.yaml" \
    >"$scratch/applied" 2>"$scratch/errors" || status=$?
  sed "s|^|${folder##*/}: |" "$scratch/applied"
  passed=$((passed + $(grep -c 'server dry run' "$scratch/applied" || true)))
  while IFS= read -r line; do failures+=("${folder##*/}: $line"); done <"$scratch/errors"
  ((status == 0)) || ((${#failures[@]} > 0)) || failures+=("${folder##*/}: kubectl exited with $status")
done

((${#failures[@]} == 0)) || printf '  %s\n' "${#failures[@]} failing" "${failures[@]}"
echo "$passed passed, ${#failures[@]} failed"
exit $((${#failures[@]} > 0))
