//! The kinds of objects that a benchmark makes and looks at.

use fathom_fleet::kube::ObjectKind;

pub(super) const NAMESPACE: ObjectKind = ObjectKind::new("v1", "Namespace");
pub(super) const POD: ObjectKind = ObjectKind::new("v1", "Pod");
pub(super) const SERVICE: ObjectKind = ObjectKind::new("v1", "Service");
pub(super) const EVENT: ObjectKind = ObjectKind::new("v1", "Event");
pub(super) const CLAIM: ObjectKind = ObjectKind::new("v1", "PersistentVolumeClaim");
pub(super) const STATEFUL_SET: ObjectKind = ObjectKind::new("apps/v1", "StatefulSet");
pub(super) const DAEMON_SET: ObjectKind = ObjectKind::new("apps/v1", "DaemonSet");
