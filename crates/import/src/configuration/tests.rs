use super::*;

fn job(options: &[(&str, &str)]) -> JobResult {
    let pair = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    JobResult {
        name: "j".to_owned(),
        options: options.iter().map(pair).collect(),
        ..JobResult::default()
    }
}

fn results(jobs: Vec<JobResult>) -> Results {
    Results {
        jobs,
        ..Results::default()
    }
}

fn of(all: &[(String, Results)]) -> Vec<Option<Point>> {
    let load = |(name, results): &'_ (String, Results)| (name.clone(), results.clone());
    let all: Vec<(String, Results)> = all.iter().map(load).collect();
    let loads = all.iter().map(|(name, results)| ImportedLoad {
        name,
        results,
        text: None,
        of_fio: true,
    });
    points(&loads.collect::<Vec<_>>())
}

fn sweep(folder: &str, fixed: &[(&str, &str)]) -> Vec<(String, Results)> {
    let mut all = Vec::new();
    for depth in ["1", "4", "16"] {
        for jobs in ["1", "2"] {
            let swept = [("iodepth", depth), ("numjobs", jobs)];
            let options = [fixed, &swept].concat();
            // Names that tell nothing.
            all.push((
                format!("{folder}x{}", all.len()),
                results(vec![job(&options)]),
            ));
        }
    }
    all
}

#[test]
fn what_varies_in_the_options_makes_series() {
    let mut all = sweep("", &[("rw", "randread"), ("bs", "4k")]);
    all.extend(sweep(
        "w",
        &[("readwrite", "randwrite"), ("blocksize", "4096")],
    ));
    let points = of(&all);
    let series: BTreeSet<&str> = points.iter().flatten().map(|p| p.series.as_str()).collect();
    let expected = [
        "randread-bs4k/numjobs-1",
        "randread-bs4k/numjobs-2",
        "randwrite-bs4k/numjobs-1",
        "randwrite-bs4k/numjobs-2",
    ];
    assert_eq!(series.into_iter().collect::<Vec<_>>(), expected);
    let point = points[4].clone().unwrap();
    assert_eq!((point.x.as_str(), point.x_value()), ("iodepth", Some(16)));
    assert_eq!(point.id, "randread-bs4k/numjobs-1/iodepth-16");
    assert_eq!(point.settings["bs"], "4k");
    let ids: BTreeSet<&String> = points.iter().flatten().map(|point| &point.id).collect();
    assert_eq!(ids.len(), 12);
}

#[test]
fn mixes_sizes_and_devices_are_told_apart() {
    let mix = |reads: &str, bs: &str, file: &str| {
        let options = [
            ("rw", "randrw"),
            ("rwmixread", reads),
            ("bs", bs),
            ("filename", file),
        ];
        (
            format!("{reads}{bs}{}", file.len()),
            results(vec![job(&options)]),
        )
    };
    let mut all = Vec::new();
    for file in ["/dev/sda", "/dev/nvme0n1"] {
        for bs in ["4k", "64k"] {
            all.extend(["0", "50", "100"].map(|reads| mix(reads, bs, file)));
        }
    }
    let points = of(&all);
    let first = points[1].clone().unwrap();
    assert_eq!(first.series, "filename-dev-sda-randrw/rwmixread-50");
    assert_eq!((first.x.as_str(), first.x_value()), ("bs", Some(4096)));
    // rwmixwrite says the same from the other side, and 50 where nothing is said.
    let said = |options: &[(&str, &str)]| settings_of(&BTreeMap::new(), &job(options), true);
    assert_eq!(
        said(&[("rw", "rw"), ("rwmixwrite", "30")])["rwmixread"],
        "70"
    );
    assert_eq!(said(&[("rw", "readwrite")])["rwmixread"], "50");
    assert_eq!(
        said(&[("rw", "read"), ("rwmixread", "70")]).get("rwmixread"),
        None
    );
}

#[test]
fn the_same_load_again_is_a_repetition_and_in_another_folder_a_series() {
    let depth = |depth: &str| results(vec![job(&[("rw", "read"), ("iodepth", depth)])]);
    let all = [("a1", "1"), ("a2", "1"), ("a3", "2")].map(|(name, d)| (name.to_owned(), depth(d)));
    let repetitions: Vec<u32> = of(&all)
        .into_iter()
        .flatten()
        .map(|p| p.repetition)
        .collect();
    assert_eq!(repetitions, [1, 2, 1]);
    let all = [
        ("sda/x", "1"),
        ("sda/y", "2"),
        ("sdb/x", "1"),
        ("sdb/y", "2"),
    ];
    let all = all.map(|(name, d)| (name.to_owned(), depth(d)));
    let points = of(&all);
    let series: Vec<&str> = points.iter().flatten().map(|p| p.series.as_str()).collect();
    assert_eq!(
        series,
        [
            "sda/read-bs4k",
            "sda/read-bs4k",
            "sdb/read-bs4k",
            "sdb/read-bs4k"
        ]
    );
}

#[test]
fn names_and_heads_tell_where_options_do_not() {
    let bare = |name: &str| (name.to_owned(), results(vec![job(&[])]));
    let all = [
        "4k/randread-1-2",
        "4k/randread-16-2",
        "4k/randwrite-1-2",
        "4k/randwrite-16-2",
    ];
    let points = of(&all.map(bare));
    let point = points[1].clone().unwrap();
    assert_eq!(point.series, "randread-bs4k");
    assert_eq!(
        (
            point.settings["iodepth"].as_str(),
            point.settings["numjobs"].as_str()
        ),
        ("16", "2")
    );
    assert!(of(&["one", "two"].map(bare)).iter().all(Option::is_none));
    let old = "a: (g=0): rw=randread, bs=4K-4K/4K-4K/4K-4K, ioengine=libaio, iodepth=8\n...\n\
               fio-2.1.7\nStarting 3 processes\n";
    let new = "a: (g=0): rw=rw, bs=(R) 8192B-8192B, (W) 8192B-8192B, ioengine=psync, iodepth=1\n";
    let told = head_tells(old);
    let of = |option: &str| told[option].as_str();
    assert_eq!(
        (of("rw"), of("bs"), of("iodepth"), of("numjobs")),
        ("randread", "4k", "8", "3")
    );
    assert_eq!(head_tells(new)["bs"], "8k");
    assert!(
        head_tells(&(old.to_owned() + new)).is_empty(),
        "two loads at once"
    );
}

#[test]
fn jobs_behind_each_other_are_loads_of_their_own() {
    let depth = |depth: &str, wall: &[(&str, &str)]| job(&[&[("iodepth", depth)], wall].concat());
    let wall = [("stonewall", "")];
    assert!(one_after_the_other(&results(vec![
        depth("1", &[]),
        depth("2", &wall)
    ])));
    assert!(!one_after_the_other(&results(vec![
        depth("1", &[]),
        depth("2", &[])
    ])));
    assert!(!one_after_the_other(&results(vec![
        depth("1", &[]),
        depth("1", &wall)
    ])));
    let mixed = (
        "mixed".to_owned(),
        results(vec![depth("1", &[]), depth("2", &[])]),
    );
    let all = [
        mixed,
        ("a".to_owned(), results(vec![depth("1", &[])])),
        ("b".to_owned(), results(vec![depth("4", &[])])),
    ];
    let points = of(&all);
    assert_eq!(
        points.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, true, true]
    );
}

#[test]
fn what_another_tool_does_not_tell_is_not_known_and_its_figures_are_its_own() {
    let of = |version: &str, depth: &str| {
        let mut results = results(vec![job(&[("rw", "read"), ("iodepth", depth)])]);
        results.engine_version = Some(version.to_owned());
        results
    };
    let all = [
        of("fio-3.33", "1"),
        of("fio-3.36", "4"),
        of("elbencho", "1"),
        of("elbencho", "4"),
    ];
    let loads = all.iter().map(|results| ImportedLoad {
        name: "x",
        results,
        text: None,
        of_fio: results.engine_version.as_deref() != Some("elbencho"),
    });
    let points = points(&loads.collect::<Vec<_>>());
    let series: Vec<&str> = points.iter().flatten().map(|p| p.series.as_str()).collect();
    let (fio, other) = ("fio/read-bs4k", "elbencho/read");
    assert_eq!(series, [fio, fio, other, other]);
    assert_eq!(points[2].as_ref().unwrap().settings.get("bs"), None);
}
