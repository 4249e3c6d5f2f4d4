//! What runs beside the phases and ends in the middle: the pods that take
//! statistics, and those of a load in the background.

use std::fs;

use serde_json::json;

use super::tape::{Answer, Exchange};
use super::{Played, fails, stderr};

/// The exchanges about some pods as those about others, by their names.
fn renamed(exchanges: &[Exchange], about: &str, names: [(&str, &str); 2]) -> Vec<Exchange> {
    let these = exchanges.iter().filter(|one| one.asked.contains(about));
    these
        .map(|exchange| {
            let mut text = serde_json::to_string(exchange).unwrap();
            for (from, to) in names {
                text = text.replace(from, to);
            }
            serde_json::from_str(&text).unwrap()
        })
        .collect()
}

/// A command that was run, and what it printed.
fn ran(asked: &str, printed: &str) -> Exchange {
    let status = json!({"metadata": {}, "status": "Success"}).to_string();
    Exchange {
        asked: asked.to_owned(),
        about: json!(null),
        status: 101,
        answer: Answer::Messages(vec![(1, printed.to_owned()), (3, status)]),
    }
}

#[test]
fn statistics_that_stop_answering_are_told_and_nothing_waits_for_them() {
    let played = Played::with("seq", |exchanges| {
        let names = [("drop-caches-9fvhf", "stats-x"), ("drop-caches", "stats")];
        let mut stats = renamed(exchanges, "component%3Ddrop-caches", names);
        stats.extend(renamed(exchanges, "daemonsets/drop-caches", names));
        exchanges.extend(stats);
        // It answers once, in a way that says nothing, and never again.
        let asked = "GET /api/v1/namespaces/NAMESPACE/pods/stats-x/exec?*";
        let mut gone = ran(asked, "");
        gone.status = 500;
        gone.answer = Answer::Object(json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "container not found", "reason": "InternalError", "code": 500,
        }));
        exchanges.extend([ran(asked, "==> /host/proc/stat\n"), gone]);
    });
    let output = played.seq(&["--stats"]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        stderr(&output).contains("node0 gave no statistics"),
        "{output:?}"
    );
    let kept = fs::read_to_string(played.record().join("stats/node0.jsonl")).unwrap();
    assert!(kept.contains("missed"), "{kept}");
}

/// A document of fio's, as it writes one while it runs.
fn document(total_ios: u64, io_bytes: u64) -> String {
    let moved = json!({
        "io_bytes": io_bytes, "total_ios": total_ios, "runtime": 1000, "bw_bytes": io_bytes,
        "iops": total_ios,
    });
    let nothing = json!({"io_bytes": 0, "total_ios": 0, "runtime": 0, "bw_bytes": 0, "iops": 0});
    let job = json!({
        "jobname": "calm", "groupid": 0, "error": 0, "job_runtime": 1000,
        "read": nothing, "write": moved, "trim": nothing,
    });
    let all = json!({
        "fio version": "fio-3.33", "timestamp": 1_700_000_000, "timestamp_ms": 1_700_000_000_000_u64,
        "time": "Tue Nov 14 22:13:20 2023", "jobs": [job],
    });
    format!("{}\n", serde_json::to_string_pretty(&all).unwrap())
}

/// Its pod is not among those of the run any more.
#[test]
fn a_load_in_the_background_that_loses_a_pod_ends_the_run_at_once() {
    let played = Played::with("seq", |exchanges| {
        let names = [
            ("component%3Dserver", "component%3Dcalm"),
            ("server-fio", "server-calm"),
        ];
        let mut calm = renamed(exchanges, "component%3Dserver", names);
        for exchange in &mut calm {
            if let Answer::Object(list) = &mut exchange.answer
                && let Some(pods) = list["items"].as_array_mut()
            {
                pods.truncate(1);
                for pod in pods {
                    pod["metadata"]["uid"] = "calm".into();
                }
            }
        }
        exchanges.extend(calm);
        let asked = "GET /api/v1/namespaces/NAMESPACE/pods/server-calm-0/exec?*";
        let printed = [
            String::new(),
            String::new(),
            "0\n".to_owned(),
            document(100, 100 << 20),
            String::new(),
            String::new(),
            String::new(),
            document(10, 4096),
            document(20, 8192),
        ];
        exchanges.extend(printed.iter().map(|printed| ran(asked, printed)));
    });
    let calm = ["--calm-ninstances=1", "--calm-fsz-gb=100M"];
    let output = played.seq(&calm);
    let told = "server-calm-0 went away while it ran: its pod was deleted";
    fails(&played, &output, &[told]);
    let record = played.record();
    let text = |name: &str| fs::read_to_string(record.join(name)).unwrap();
    assert!(text("server_calm/calm.fio").contains("filesize=100m"));
    assert!(record.join("calm").exists(), "what it did is kept");
}
