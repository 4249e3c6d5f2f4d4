#!/bin/bash
# Build real Kubernetes binaries from the Go module k8s.io/kubernetes (published Go modules only),
# install the Debian packages, and make the container images. Re-runnable; each part is skipped
# when its output exists.
#   build.sh            everything
#   build.sh bins|debs|images    one part
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tools/cluster/env.sh
. ./env.sh
mkdir -p "$K8S_ROOT" "$BIN" "$IMG"
what=${1:-all}
NICE=(nice -n 10)
t() { local s=$SECONDS; "$@"; echo "[build] $* : $((SECONDS-s))s"; }

# Where policy-rc.d says no (exit 101), as in a container, dpkg starts no daemon.
debs() { "${NICE[@]}" ../setup.sh "$@"; }

# A Go that Kubernetes can be built with: this machine's, else the toolchain that Go publishes as a
# module, which any Go can fetch (and check); in a module no file may be executed.
newgo() {
  local v; v=$(go env GOVERSION)
  [ "$(printf '%s\n' "$GOVER" "${v#go}" | sort -V | head -n 1)" = "$GOVER" ] && return 0
  local d; d=$(cd "$K8S_ROOT" && go mod download -json "golang.org/toolchain@v0.0.1-go$GOVER.linux-$(go env GOARCH)" \
    | sed -n 's/.*"Dir": "\(.*\)",*/\1/p')
  [ -n "$d" ] || { echo "[build] Go $v is too old, and $GOVER cannot be had"; return 1; }
  chmod u+x "$d"/bin/* "$d"/pkg/tool/*/*
  unset GOROOT
  export PATH=$d/bin:$PATH
  [ "$(go env GOVERSION)" = "go$GOVER" ]
}

gomodule() {
  # A wrapper module. k8s.io/kubernetes' own go.mod requires k8s.io/api etc. at v0.0.0 (resolved by
  # its go.work), so every staging module needs a replace to the published v0.<minor>.<patch>.
  local w=$K8S_ROOT/wrap; mkdir -p "$w"; cd "$w"
  local sv=v0.${KVER#v1.}
  [ -f go.mod ] && grep -q "k8s.io/kubernetes $KVER" go.mod && return 0
  local j up; j=$(cd "$w" && go mod download -json "k8s.io/kubernetes@$KVER") || { echo "$j"; return 1; }
  up=$(echo "$j" | sed -n 's/.*"GoMod": "\(.*\)",*/\1/p')
  {
    echo "module wrap"; echo
    grep -E '^go ' "$up"
    echo "godebug ("; sed -n 's/^godebug \(.*=.*\)/\t\1/p' "$up"; echo ")"
    echo "require k8s.io/kubernetes $KVER"
    echo "replace ("
    sed -nE 's/^\t(k8s\.io\/[a-z-]+) v0\.0\.0$/\1/p' "$up" | while read -r m; do echo "	$m => $m $sv"; done
    echo ")"
  } > go.mod
  cat > tools.go <<'G'
//go:build tools

package tools

import (
	_ "k8s.io/kubernetes/cmd/kube-apiserver"
	_ "k8s.io/kubernetes/cmd/kube-controller-manager"
	_ "k8s.io/kubernetes/cmd/kube-proxy"
	_ "k8s.io/kubernetes/cmd/kube-scheduler"
	_ "k8s.io/kubernetes/cmd/kubectl"
	_ "k8s.io/kubernetes/cmd/kubelet"
)
G
}

# Go's caches grow to gigabytes and are of no use once all is built.
goenv() {
  export GOMODCACHE=$K8S_ROOT/gomod GOCACHE=$K8S_ROOT/gocache
  export GOTOOLCHAIN=local CGO_ENABLED=0 GOFLAGS="-mod=mod -modcacherw -buildvcs=false"
}

bins() {
  gomodule
  cd "$K8S_ROOT/wrap"
  local V=k8s.io/component-base/version C=k8s.io/client-go/pkg/version X="-s -w" p
  for p in $V $C; do
    X+=" -X $p.gitVersion=$KVER -X $p.gitMajor=1 -X $p.gitMinor=$(echo "$KVER" | cut -d. -f2) -X $p.gitTreeState=clean -X $p.buildDate=1970-01-01T00:00:00Z"
  done
  local b all=(kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubectl)
  echo "[build] downloading the modules of Kubernetes $KVER"
  t "${NICE[@]}" go list -deps -f "{{.ImportPath}}" "${all[@]/#/k8s.io/kubernetes/cmd/}" > "$K8S_ROOT/deps.txt"
  local n=0
  for b in "${all[@]}"; do
    n=$((n+1)); echo "[build] $b, $n of ${#all[@]}"
    t "${NICE[@]}" go build -trimpath -tags grpcnotrace,providerless -ldflags "$X" -o "$BIN/$b" "k8s.io/kubernetes/cmd/$b"
  done
  ls -l --block-size=M "$BIN"
}

# What was built by this very version of these scripts is used as it is.
made=$(cat build.sh env.sh images.sh mkimage.py | sha256sum | cut -d' ' -f1)
if [ "$what" = all ] && [ "$(cat "$K8S_ROOT/made" 2>/dev/null)" = "$made" ]; then
  debs cluster
  exit 0
fi

goenv
case $what in
  debs) t debs cluster cluster-build;;
  bins) t newgo; t bins;;
  images) t newgo; t ./images.sh;;
  all) t debs cluster cluster-build; t newgo; t bins; t "$HERE/images.sh"; rm -rf "$GOMODCACHE" "$GOCACHE" "$K8S_ROOT"/{fio-rootfs,pause-src}; echo "$made" > "$K8S_ROOT/made";;
esac
