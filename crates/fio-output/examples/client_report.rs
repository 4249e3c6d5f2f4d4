//! A json+ report of fio's client mode as 300 hosts make it, and how long it
//! takes to read.
//!
//! `client_report` reads it 20 times and prints the times; `client_report CLIENTS`
//! takes another number of clients; `client_report CLIENTS write` prints the
//! document itself.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

use std::fmt::Write as _;
use std::time::Instant;

use fathom_fio_output::json;
use fathom_model::histogram::middle_of;

/// Buckets that hold something in each of a client's two histograms: with
/// these a client takes 6 kB, as 301 of them took 1.8 MB of fio 3.33.
const BUCKETS: usize = 40;

fn main() {
    let mut args = std::env::args().skip(1);
    let clients = args.next().map_or(300, |text| text.parse().unwrap());
    let text = report(clients);
    if args.next().is_some() {
        print!("{text}");
        return;
    }
    let mut times: Vec<f64> = (0..20)
        .map(|_| {
            let start = Instant::now();
            let scan = json::scan(text.as_bytes());
            let ms = start.elapsed().as_secs_f64() * 1e3;
            assert_eq!(scan.documents[0].results.jobs.len(), clients + 1);
            ms
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("clients   {clients}");
    println!("bytes     {}", text.len());
    println!("best      {:.2} ms", times[0]);
    println!("median    {:.2} ms", times[times.len() / 2]);
    println!("worst     {:.2} ms", times[times.len() - 1]);
}

/// As fio's json.c prints it.
fn report(clients: usize) -> String {
    let mut text = "\n{\n  \"fio version\" : \"fio-3.33\",\n  \"timestamp\" : 1700000000,\n  \
        \"time\" : \"Tue Nov 14 22:13:20 2023\",\n  \"global options\" : {\n    \
        \"size\" : \"4m\",\n    \"bs\" : \"4k\"\n  },\n  \"client_stats\" : [\n"
        .to_owned();
    for client in 0..=clients {
        let name = if client == clients {
            "All clients"
        } else {
            "cs"
        };
        job(&mut text, name, client);
        text += if client == clients { "\n" } else { ",\n" };
    }
    text += "  ],\n  \"disk_util\" : [\n\n  ]\n}\n\n";
    text
}

fn job(text: &mut String, name: &str, client: usize) {
    let host = format!("10.0.{}.{}", client / 250, client % 250);
    write!(
        text,
        "    {{\n      \"jobname\" : \"{name}\",\n      \"groupid\" : 0,\n      \"error\" : 0,\n      \
         \"job options\" : {{\n        \"rw\" : \"randrw\",\n        \"filename\" : \"/srv/f\"\n      }},\n"
    )
    .unwrap();
    for (nth, dir) in ["read", "write", "trim"].into_iter().enumerate() {
        direction(text, dir, nth, client);
    }
    write!(
        text,
        "      \"sync\" : {{\n        \"total_ios\" : 0,\n        \"lat_ns\" : {{\n          \
         \"min\" : 0,\n          \"max\" : 0,\n          \"mean\" : 0.000000,\n          \
         \"stddev\" : 0.000000,\n          \"N\" : 0\n        }}\n      }},\n      \
         \"job_runtime\" : 3000,\n      \"usr_cpu\" : 8.766667,\n      \"sys_cpu\" : 3.100000,\n      \
         \"ctx\" : 786,\n      \"majf\" : 0,\n      \"minf\" : 13,\n"
    )
    .unwrap();
    for name in [
        "iodepth_level",
        "iodepth_submit",
        "latency_ns",
        "latency_us",
        "latency_ms",
    ] {
        writeln!(text, "      \"{name}\" : {{").unwrap();
        for class in [1, 2, 4, 8, 16, 32] {
            writeln!(text, "        \"{class}\" : 12.500000,").unwrap();
        }
        text.push_str("        \">=64\" : 0.000000\n      },\n");
    }
    write!(
        text,
        "      \"hostname\" : \"{host}\",\n      \"port\" : 8765\n    }}"
    )
    .unwrap();
}

fn direction(text: &mut String, dir: &str, nth: usize, client: usize) {
    let ios = if nth < 2 { 4 * (1200 + client) } else { 0 };
    let runtime = if ios > 0 { 3000 } else { 0 };
    write!(
        text,
        "      \"{dir}\" : {{\n        \"io_bytes\" : {},\n        \"io_kbytes\" : {},\n        \
         \"bw_bytes\" : {},\n        \"bw\" : {},\n        \"iops\" : {}.000000,\n        \
         \"runtime\" : {runtime},\n        \"total_ios\" : {ios},\n        \"short_ios\" : 0,\n        \
         \"drop_ios\" : 0,\n",
        ios * 4096,
        ios * 4,
        ios * 4096 / 3,
        ios * 4 / 3,
        ios / 3,
    )
    .unwrap();
    for (kind, has_bins) in [("slat", false), ("clat", ios > 0), ("lat", false)] {
        write!(
            text,
            "        \"{kind}_ns\" : {{\n          \"min\" : 1432,\n          \"max\" : 2338100,\n          \
             \"mean\" : 66999.920000,\n          \"stddev\" : 163480.540000,\n          \"N\" : {ios}"
        )
        .unwrap();
        if has_bins {
            bins(text, ios);
        }
        text.push_str("\n        },\n");
    }
    for name in [
        "bw_min",
        "bw_max",
        "bw_samples",
        "iops_min",
        "iops_max",
        "iops_samples",
    ] {
        writeln!(text, "        \"{name}\" : {},", ios * 2).unwrap();
    }
    for name in ["bw_agg", "bw_mean", "bw_dev", "iops_mean"] {
        writeln!(text, "        \"{name}\" : 100.000000,").unwrap();
    }
    text.push_str("        \"iops_stddev\" : 0.000000\n      },\n");
}

fn bins(text: &mut String, ios: usize) {
    text.push_str(",\n          \"percentile\" : {\n");
    for percent in [1.0, 5.0, 10.0, 50.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95] {
        writeln!(text, "            \"{percent:.6}\" : 99840,").unwrap();
    }
    text.push_str("            \"99.990000\" : 99840\n          },\n          \"bins\" : {\n");
    for nth in 0..BUCKETS {
        let end = if nth + 1 < BUCKETS {
            ",\n"
        } else {
            "\n          }"
        };
        let (value, count) = (middle_of(700 + 3 * nth), ios / BUCKETS);
        write!(text, "            \"{value}\" : {count}{end}").unwrap();
    }
}
