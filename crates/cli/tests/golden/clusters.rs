//! `cluster`, against recorded answers of a real API server.

use super::play::Play;
use crate::exchanges::player::Player;
use crate::exchanges::tape;

#[test]
fn a_benchmark_in_a_cluster() {
    let mut play = Play::new();
    let player = Player::new(tape::read("seq"), "perf");
    play.file("kubeconfig", &player.kubeconfig().to_string());
    let size = "--ninstances=2 --fsz-gb=1 --njobs=1 --pvcsz-req-gb=2 --storageclass=hostpath";
    let cluster = "--image localhost/fio:test --namespace perf --kubeconfig kubeconfig";
    play.run(&format!(
        "cluster seq {size} {cluster} --dropcaches pagecache"
    ));
    play.tree("fathom-runs");
    play.texts("fathom-runs", ".yaml");
    play.texts("fathom-runs", ".txt");
    play.texts("fathom-runs", ".list");
    play.events("fathom-runs");
    play.ends_as("cluster");
}
