# shellcheck shell=bash disable=SC2034  # it is read by the scripts beside it
# Settings of build.sh, up.sh, down.sh and kubectl, which source it. Everything lives
# under $K8S_ROOT; only Debian packages are installed for the whole system.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)   # where the scripts are
K8S_ROOT=${FATHOM_CLUSTER:-${XDG_CACHE_HOME:-$HOME/.cache}/fathom-cluster}   # state: binaries, images, logs, run
# The whole module set resolves and verifies for v1.32.0, v1.31.0, v1.34.1;
# not for v1.32.3, v1.32.4 and v1.32.13.
KVER=${KVER:-v1.32.0}
GOVER=1.23.4                      # the Go that it is built with where the machine's is older (its go.mod: 1.23.0)
BIN=$K8S_ROOT/bin                 # built binaries
RUN=$K8S_ROOT/run                 # all state: pids, logs, pki, etcd, kubelet root, containerd root
LOG=$RUN/log
PKI=$RUN/pki
IMG=$K8S_ROOT/images              # image tarballs
NODE_NAME=${NODE_NAME:-node0}
# All addresses below exist only inside a network namespace of our own, which has no uplink.
NODE_IP=${NODE_IP:-10.88.255.1}
API_PORT=6443
POD_CIDR=10.88.0.0/24
SVC_CIDR=10.88.128.0/24
SVC_KUBERNETES_IP=10.88.128.1
export KUBECONFIG=$RUN/admin.kubeconfig
CRI_SOCK=$RUN/containerd.sock
holder() { awk '$1=="holder"{print $2}' "$RUN/pids"; }
inns()  { nsenter -t "$(holder)" -m -n -- "$@"; }              # in the cluster's mount+net namespaces
kubectl() { nsenter -t "$(holder)" -n -- "$BIN/kubectl" "$@"; } # net namespace only: host file paths
