use fathom_model::environment::{BlockDevice, FileSystem, Target};
use fathom_model::{
    Entry, Environment, Event, EvidenceInterval, Failure, FailureKind, Host, LayerKind, RunStatus,
    StackLayer,
};
use serde_json::json;

use super::*;
use crate::RunRemarks;

/// Of every kind, and as they stand beside one another in texts; none of hexadecimal digits
/// alone so short that a checksum may have it.
const SECRETS: [&str; 16] = [
    "S4EWNX0R123456",
    "s4ewnx0r123456",
    "5000c500a1b2c3d4",
    "pg1",
    "corp.acme.example",
    "lab7",
    "alice",
    "bob",
    "customer-x",
    "secret plan",
    "10.20.30.40",
    "fd00:12::7",
    "52:54:00:12:34:56",
    "4f8a2c1e-0b7d-4e1f-9a53-2d6c7b8e9f01",
    "nqn.2014-08.org.nvmexpress",
    "https://hook",
];

/// Every secret in a text of its own kind.
fn text() -> String {
    "pg1.corp.acme.example PG1 says: S4EWNX0R123456 (wwn-0x5000c500a1b2c3d4, s4ewnx0r123456) of \
     alice@lab7:/home/alice/x; filename=/srv/customer-x/disk.img:/dev/nvme0n1 \
     addr=10.20.30.40,username=bob fd00:12::7 [fd00:12::7]:8765 52:54:00:12:34:56 \
     uuid=4f8a2c1e-0b7d-4e1f-9a53-2d6c7b8e9f01 nqn.2014-08.org.nvmexpress:uuid:x \
     customer-x/jobs/a.fio '/srv/customer-x/disk.img' https://hook.acme/t?k=1 10.20.30.40:8765."
        .to_owned()
}

fn environment() -> Environment {
    let device = BlockDevice {
        name: "nvme0n1".into(),
        model: Some("ACME MZVL21T0".into()),
        serial: Some("S4EWNX0R123456".into()),
        by_id: vec![
            "nvme-ACME_MZVL21T0_S4EWNX0R123456".into(),
            "wwn-0x5000c500a1b2c3d4".into(),
        ],
        ..BlockDevice::default()
    };
    Environment {
        hostname: "pg1.corp.acme.example".into(),
        kernel: "6.1.0.4".into(),
        targets: vec![
            Target {
                path: "/srv/customer-x/disk.img".into(),
                file_system: Some(FileSystem {
                    mount_point: "/srv/customer-x".into(),
                    source: "lab7:/export/customer-x".into(),
                    device: Some(device),
                    ..FileSystem::default()
                }),
                stack: Some(StackLayer {
                    backing: Some("lab7:/export/customer-x".into()),
                    ..StackLayer::new(LayerKind::Network, "network")
                }),
                ..Target::default()
            },
            Target {
                path: "customer-x/jobs/a.fio".into(),
                ..Target::default()
            },
        ],
        ..Environment::default()
    }
}

fn record(runs: &Path) -> PathBuf {
    let header = Header {
        environment: Some(environment()),
        facts: [
            (
                "command".to_owned(),
                json!(["fathom", "customer-x/jobs/a.fio"]),
            ),
            ("hosts".to_owned(), json!(["alice@lab7"])),
            (
                "variables".to_owned(),
                json!({"lab7": {"DIR": "/srv/customer-x"}}),
            ),
            ("tags".to_owned(), json!({"machine": "pg1"})),
        ]
        .into_iter()
        .collect(),
        ..Header::new("on pg1", "job run")
    };
    let mut writer = Writer::create(runs, &header).unwrap();
    let mut append = |event| writer.append(&event).unwrap();
    let hosts = vec!["lab7".to_owned()];
    append(Event::Jobs {
        names: vec!["read pg1".into()],
        hosts,
    });
    let mut failure = Failure::new(FailureKind::Io, text());
    failure.subject = Some("/srv/customer-x/disk.img".into());
    append(Event::Failure(failure));
    append(Event::Note { text: text() });
    append(Event::Evidence(Box::new(EvidenceInterval {
        settings: [(
            "nvme0n1.limit_riops_group".to_owned(),
            "/lab/customer-x".to_owned(),
        )]
        .into(),
        ..EvidenceInterval::default()
    })));
    append(Event::Hosts {
        hosts: vec![Host {
            name: "lab7".into(),
            hostname: Some("lab7".into()),
            environment: Some(Box::new(environment())),
            ..Host::default()
        }],
    });
    let dir = writer.finish(RunStatus::Complete).unwrap();
    add_files(&dir, &header);
    dir
}

/// What lies beside the log.
fn add_files(dir: &Path, header: &Header) {
    for folder in ["jobs", "raw/pg1", "hosts", "graphs"] {
        fs::create_dir_all(dir.join(folder)).unwrap();
    }
    fs::write(dir.join("jobs/pg1.fio"), format!("[a]\n{}\n", text())).unwrap();
    let quoted = json!({"text": text(), "path": "/srv/secret plan/x", "lab7": 1});
    fs::write(
        dir.join("raw/pg1/fio.json"),
        format!("{quoted}\n{}", text()),
    )
    .unwrap();
    fs::write(dir.join("plan.jsonl"), format!("{quoted}\n{quoted}\n")).unwrap();
    fs::write(dir.join("graphs/x.svg"), text()).unwrap();
    fs::write(dir.join("report.redacted.html"), "user-7@host-1").unwrap();
    fs::write(dir.join("raw/pg1/binary"), [0xff, 0xfe, b'p', b'g', b'1']).unwrap();
    // A machine's own record.
    let own = Writer::create_in(&dir.join("hosts/lab7"), header).unwrap();
    own.finish(RunStatus::Complete).unwrap();
    let mut remarks = RunRemarks::default();
    remarks.note(&text()).unwrap();
    remarks.write(dir).unwrap();
}

#[test]
fn nothing_of_whose_it_is_is_left() {
    let folder = tempfile::tempdir().unwrap();
    let dir = record(&folder.path().join("runs"));
    let to = folder.path().join("copies");
    let copy = Redaction::default().copy(&dir, &to).unwrap();
    assert_eq!(copy.left_out, [dir.join("raw/pg1/binary")]);
    let mut seen = 0;
    for file in files(&copy.dir).unwrap() {
        let name = file.strip_prefix(&to).unwrap().display().to_string();
        let text = format!("{name}\n{}", fs::read_to_string(&file).unwrap());
        for secret in SECRETS {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
    // It is a record still, with its checks, and says the same otherwise.
    let before: Vec<Entry> = Entries::open(&dir).unwrap().map(Result::unwrap).collect();
    let entries = Entries::open(&copy.dir).unwrap();
    assert_eq!(entries.status, Some(RunStatus::Complete));
    let environment = entries.header.environment.clone().unwrap();
    let after: Vec<Entry> = entries.map(Result::unwrap).collect();
    assert_eq!(before.len(), after.len());
    assert!(before.iter().zip(&after).all(|(a, b)| a.at_ms == b.at_ms));
    assert_eq!(environment.kernel, "6.1.0.4");
    let device = environment.targets[0]
        .file_system
        .clone()
        .unwrap()
        .device
        .unwrap();
    assert_eq!(device.model.as_deref(), Some("ACME MZVL21T0"));
    assert_eq!(device.name, "nvme0n1");
    // One word, one pseudonym.
    let serial = device.serial.unwrap();
    let job = fs::read_to_string(
        copy.dir
            .join("jobs")
            .join(format!("{}.fio", environment.hostname)),
    );
    let job = job.unwrap();
    assert!(
        serial.starts_with("serial-") && job.contains(&serial),
        "{job}"
    );
    assert!(job.contains(":/dev/nvme0n1"), "{job}");
    let path = environment.targets[0].path.display().to_string();
    assert!(job.contains(&format!("filename={path}:")), "{path}: {job}");
}

#[test]
fn what_stands_for_a_word_is_not_taken_for_another() {
    let mut words = Pseudonyms::default();
    words.learn(&json!({"hosts": ["warehouse1", "host-1"]}));
    assert_eq!(
        words.redact("warehouse1 host-1 xwarehouse1"),
        "host-1 host-2 xhost-1"
    );
}

#[test]
fn words_that_everything_is_made_of_are_left() {
    let mut words = Pseudonyms::default();
    words.learn(&json!({"hostname": "read", "serial": "12", "user": "fio"}));
    let text = "read: IOPS=12, 12 % of 1/2 at 12:34:56 MiB/s, fio-3.33 in /dev/sda and /sys/x";
    assert_eq!(words.redact(text), text);
    // In a field of its own it is one.
    let field = words.redact_value(json!({"hostname": "read", "dir": "read"}), "");
    assert_eq!(field, json!({"hostname": "host-1", "dir": "read"}));
    let mut words = Pseudonyms::default();
    words.learn(&json!({"hostname": "box"}));
    assert_eq!(
        words.redact("box, Box; boxes sandbox"),
        "host-1, Box; boxes sandbox"
    );
}

#[test]
fn a_long_record_stays_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &Header::new("a", "job run")).unwrap();
    writer.set_segment_bytes(4 << 10);
    for n in 0..500u64 {
        let text = format!("{n} at 10.0.0.{}", n % 200);
        writer.append(&Event::Note { text }).unwrap();
        let (t_ms, remaining_ms) = (n, None);
        writer
            .append(&Event::Interval { t_ms, remaining_ms })
            .unwrap();
    }
    let dir = writer.finish(RunStatus::Complete).unwrap();
    assert!(Entries::open(&dir).unwrap().closed_segments() > 3);
    let copy = Redaction::default()
        .copy(&dir, &folder.path().join("to"))
        .unwrap();
    let entries = Entries::open(&copy.dir).unwrap();
    let texts = entries.map(|entry| serde_json::to_string(&entry.unwrap()).unwrap());
    let all: Vec<String> = texts.collect();
    assert_eq!(all.len(), 1001);
    assert!(!all.iter().any(|line| line.contains("10.0.0.")));
}
