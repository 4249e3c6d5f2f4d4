#!/bin/bash
# Bring up a real single-node Kubernetes cluster: etcd, kube-apiserver, kube-controller-manager,
# kube-scheduler, containerd, kubelet, kube-proxy. Needs root and what build.sh makes.
#   WITH_PROXY=0   leave kube-proxy out (no ClusterIP services)
#   PV_DIR=/path   host directory that holds the hostPath PVs (default $RUN/hostpath_pv); inside the
#                  cluster it is /tmp/hostpath_pv, a path fixed in kube-controller-manager's source
# Everything runs in one private mount + network namespace with no uplink, so that no route, address,
# iptables rule or mount appears on the host, and nothing can leave the machine.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=tools/cluster/env.sh
. ./env.sh
WITH_PROXY=${WITH_PROXY:-1}
T0=$(date +%s%N)
say() { local d=$(( ($(date +%s%N)-T0)/100000000 )); printf '[up %3d.%ds] %s\n' $((d/10)) $((d%10)) "$*"; }
[ -e "$RUN/pids" ] && { echo "already up? ($RUN/pids exists); run down.sh"; exit 1; }
mkdir -p "$RUN" "$LOG" "$PKI" "$RUN"/{etcd,containerd,cni,fs,saved,hostpath_pv,tmp}
: > "$RUN/pids"

# ---- 0. host state that namespaces do not cover: kubelet writes these global sysctls -------------
for k in vm/overcommit_memory vm/panic_on_oom kernel/panic kernel/panic_on_oops kernel/keys/root_maxkeys kernel/keys/root_maxbytes; do
  echo "$k $(cat /proc/sys/$k)"; done > "$RUN/saved/sysctl"
# default paths that components hard-code; each is bind-mounted from $RUN/fs inside our mount namespace.
# Mount points that don't exist yet are made (empty) on the host and removed again by down.sh.
DIRS="/var/lib/kubelet /var/lib/cni /var/log/pods /var/log/containers /run/containerd /run/netns /usr/libexec/kubernetes /opt/cni /tmp/hostpath_pv"
for d in $DIRS; do [ -e "$d" ] || echo "$d"; done > "$RUN/saved/absent"
# shellcheck disable=SC2086  # a list of paths is meant
mkdir -p $DIRS

# ---- 1. cgroups: each daemon in its own cgroup k8s-sys/<name> on every v1 hierarchy ---------------
# Why: kubelet/cadvisor wants one and the same path on the cpu and memory hierarchies ("cpu and memory
# cgroup hierarchy not unified"), and a login shell may sit elsewhere on each
# (cpuset is left out: a new v1 cpuset takes no task before its cpus and mems are set.)
CGS=""; for c in cpu cpuacct memory pids blkio devices freezer systemd; do
  [ -d /sys/fs/cgroup/$c ] && CGS+=" $c"; done
start() { # name cmd... (outside the namespaces when name=holder)
  local n=$1; shift
  for c in $CGS; do mkdir -p "/sys/fs/cgroup/$c/k8s-sys/$n"; done
  # shellcheck disable=SC2016  # the inner shell expands
  setsid bash -c 'n=$1; shift; cgs=$1; shift
    for c in $cgs; do echo $$ > /sys/fs/cgroup/$c/k8s-sys/$n/cgroup.procs || exit 90; done
    exec "$@"' _ "$n" "$CGS" "$@" > "$LOG/$n.log" 2>&1 < /dev/null &
  echo "$n $!" >> "$RUN/pids"
}
nsstart() { local n=$1; shift; start "$n" nsenter -t "$(holder)" -m -n -- "$@"; }   # nsenter execs: PID stays
wait_for() { # what seconds cmd...
  local w=$1 s=$2; shift 2
  local end=$((SECONDS+s))
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -ge $end ] && { echo "[up] $w not ready after ${s}s; see $LOG"; exit 1; }
    sleep 0.2; done; say "$w ready"; }

# ---- 2. the namespaces ---------------------------------------------------------------------------
start holder unshare --mount --net --propagation private sleep infinity
wait_for holder 5 bash -c "[ \"\$(readlink /proc/$(holder)/ns/net)\" != \"\$(readlink /proc/self/ns/net)\" ] && grep -q sleep /proc/$(holder)/comm"
# shellcheck disable=SC2086  # paths without white space, each a line of a script
{ echo "set -e"
  for d in $DIRS; do s=$RUN/fs$d; [ $d = /tmp/hostpath_pv ] && s=${PV_DIR:-$RUN/hostpath_pv}
    echo "mkdir -p $s; mount --bind $s $d"; done
  echo "mount --make-rshared /"                       # lets mountPropagation work; private to this namespace
  echo "ip link set lo up; ip addr add $NODE_IP/32 dev lo"  # no CONFIG_DUMMY; lo carries the node address
  echo "echo 1 > /proc/sys/net/ipv4/ip_forward"
} > "$RUN/tmp/ns.sh"
inns bash "$RUN/tmp/ns.sh"
say "namespaces"

# ---- 3. PKI --------------------------------------------------------------------------------------
if [ ! -s "$PKI/ca.crt" ]; then
  ( cd "$PKI"; umask 077
  key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }
  key ca; openssl req -x509 -new -key ca.key -subj /CN=fathom-cluster-ca -days 30 -out ca.crt \
      -addext basicConstraints=critical,CA:TRUE -addext keyUsage=critical,keyCertSign,cRLSign,digitalSignature
  cert() { # name subject eku [san]
    key "$1"; openssl req -new -key "$1.key" -subj "$2" -out "$1.csr"
    { echo "keyUsage=critical,digitalSignature,keyEncipherment"; echo "extendedKeyUsage=$3"; [ -z "${4:-}" ] || echo "subjectAltName=$4"; } > "$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 30 -extfile "$1.ext" -out "$1.crt" 2>/dev/null; rm -f "$1.csr" "$1.ext"; }
  cert apiserver /CN=kube-apiserver serverAuth "IP:127.0.0.1,IP:$NODE_IP,IP:$SVC_KUBERNETES_IP,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,DNS:kubernetes.default.svc.cluster.local"
  cert admin /O=system:masters/CN=admin clientAuth
  cert kubelet-client /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
  cert controller-manager /CN=system:kube-controller-manager clientAuth
  cert scheduler /CN=system:kube-scheduler clientAuth
  cert proxy /CN=system:kube-proxy clientAuth
  cert node "/O=system:nodes/CN=system:node:$NODE_NAME" clientAuth
  cert kubelet-serving "/O=system:nodes/CN=system:node:$NODE_NAME" serverAuth "IP:$NODE_IP,DNS:$NODE_NAME"
  openssl genrsa -out sa.key 2048 2>/dev/null; openssl rsa -in sa.key -pubout -out sa.pub 2>/dev/null
  )
fi
kc() { # file user
  cat > "$1" <<Y
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "https://$NODE_IP:$API_PORT", certificate-authority: $PKI/ca.crt}}]
users: [{name: u, user: {client-certificate: $PKI/$2.crt, client-key: $PKI/$2.key}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
Y
}
kc "$RUN/admin.kubeconfig" admin; kc "$RUN/cm.kubeconfig" controller-manager
kc "$RUN/sched.kubeconfig" scheduler; kc "$RUN/kubelet.kubeconfig" node; kc "$RUN/proxy.kubeconfig" proxy
say "pki and kubeconfigs"

# ---- 4. etcd (Debian, 3.4) and containerd (Debian, 1.6) --------------------------------------------
nsstart etcd etcd --name n --data-dir "$RUN/etcd" --listen-client-urls http://127.0.0.1:2379 \
  --advertise-client-urls http://127.0.0.1:2379 --listen-peer-urls http://127.0.0.1:2380 \
  --initial-advertise-peer-urls http://127.0.0.1:2380 --initial-cluster n=http://127.0.0.1:2380 --logger zap

cat > "$RUN/containerd.toml" <<T
version = 2
root = "$RUN/containerd"
state = "/run/containerd"          # bind-mounted to $RUN/fs/run/containerd
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs","io.containerd.snapshotter.v1.zfs","io.containerd.snapshotter.v1.devmapper","io.containerd.internal.v1.opt"]
[grpc]
  address = "$CRI_SOCK"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:local"
  disable_apparmor = true
  # Where the shell lacks CAP_SYS_RESOURCE, so oom_score_adj can't be lowered. Without the next line
  # runc dies on the sandbox's -998: "can't get final child's PID from pipe: EOF".
  restrict_oom_score_adj = true
  disable_hugetlb_controller = true           # no hugetlb v1 hierarchy is mounted here
  tolerate_missing_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"                  # where Debian's containernetworking-plugins puts them
    conf_dir = "$RUN/cni"
T
cat > "$RUN/cni/10-bridge.conflist" <<J
{"cniVersion":"0.4.0","name":"k8snet","plugins":[
 {"type":"bridge","bridge":"cni0","isGateway":true,"hairpinMode":true,"ipMasq":false,
  "ipam":{"type":"host-local","ranges":[[{"subnet":"$POD_CIDR"}]],"routes":[{"dst":"0.0.0.0/0"}]}}]}
J
nsstart containerd containerd --config "$RUN/containerd.toml"

# ---- 5. control plane ------------------------------------------------------------------------------
wait_for etcd 30 nsenter -t "$(holder)" -n curl -fsS http://127.0.0.1:2379/health
nsstart apiserver "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
  --bind-address="$NODE_IP" --advertise-address="$NODE_IP" --secure-port=$API_PORT \
  --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
  --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true \
  --service-account-issuer=https://kubernetes.default.svc.cluster.local \
  --service-account-key-file="$PKI/sa.pub" --service-account-signing-key-file="$PKI/sa.key" \
  --service-cluster-ip-range="$SVC_CIDR" --kubelet-preferred-address-types=InternalIP \
  --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
  --kubelet-certificate-authority="$PKI/ca.crt" --profiling=false

wait_for containerd 30 inns ctr -a "$CRI_SOCK" version
# fathom.tar is there when tools/test-cluster.sh has made it.
for t in pause fio fathom; do [ -s "$IMG/$t.tar" ] || continue; inns nice -n 10 ctr -a "$CRI_SOCK" -n k8s.io images import "$IMG/$t.tar" >> "$LOG/import.log" 2>&1; done
say "images imported"
wait_for apiserver 90 kubectl get --raw /readyz

nsstart controller-manager "$BIN/kube-controller-manager" --kubeconfig="$RUN/cm.kubeconfig" \
  --authentication-kubeconfig="$RUN/cm.kubeconfig" --authorization-kubeconfig="$RUN/cm.kubeconfig" \
  --service-account-private-key-file="$PKI/sa.key" --root-ca-file="$PKI/ca.crt" \
  --use-service-account-credentials=true --leader-elect=false --bind-address=127.0.0.1 \
  --cert-dir="$RUN/tmp" --enable-hostpath-provisioner=true --profiling=false
nsstart scheduler "$BIN/kube-scheduler" --kubeconfig="$RUN/sched.kubeconfig" \
  --authentication-kubeconfig="$RUN/sched.kubeconfig" --authorization-kubeconfig="$RUN/sched.kubeconfig" \
  --leader-elect=false --bind-address=127.0.0.1 --profiling=false

# ---- 6. kubelet and kube-proxy ---------------------------------------------------------------------
: > "$RUN/resolv.conf"     # no DNS in the cluster; pods get an empty resolv.conf
cat > "$RUN/kubelet.yaml" <<Y
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $PKI/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $PKI/kubelet-serving.crt
tlsPrivateKeyFile: $PKI/kubelet-serving.key
containerRuntimeEndpoint: unix://$CRI_SOCK
cgroupDriver: cgroupfs
oomScoreAdj: 0                    # default -999 needs CAP_SYS_RESOURCE (only logs an error here)
failSwapOn: false
failCgroupV1: false
resolvConf: $RUN/resolv.conf
makeIPTablesUtilChains: false
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, nodefs.inodesFree: 1%, imagefs.available: 1%, imagefs.inodesFree: 1%}
nodeStatusUpdateFrequency: 5s
Y
nsstart kubelet "$BIN/kubelet" --config="$RUN/kubelet.yaml" --kubeconfig="$RUN/kubelet.kubeconfig" \
  --hostname-override="$NODE_NAME" --node-ip="$NODE_IP" --v=2

if [ "$WITH_PROXY" = 1 ]; then
cat > "$RUN/proxy.yaml" <<Y
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
bindAddress: $NODE_IP
metricsBindAddress: 127.0.0.1:10249
healthzBindAddress: 127.0.0.1:10256
hostnameOverride: $NODE_NAME
clientConnection: {kubeconfig: $RUN/proxy.kubeconfig}
mode: iptables
oomScoreAdj: 0
clusterCIDR: $POD_CIDR
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
Y
nsstart proxy "$BIN/kube-proxy" --config="$RUN/proxy.yaml"
fi
node_ready() { [ "$(kubectl get node "$NODE_NAME" -o jsonpath='{.status.conditions[?(@.type=="Ready")].status}')" = True ]; }
wait_for "node $NODE_NAME" 90 node_ready
wait_for "default service account" 30 kubectl get sa default
kubectl get nodes -o wide
echo "use: $HERE/kubectl get nodes"
