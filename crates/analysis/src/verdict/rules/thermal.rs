//! A CPU or the drive slowed itself down for its temperature.

use fathom_model::{ReasonKind, VerdictReason};

use crate::verdict::JudgedFigure;

/// Once is enough: they count their own decisions (thermal_throttle of
/// Documentation/ABI/testing/sysfs-devices-system-cpu; Thermal Management Temperature
/// Transition Counts, NVMe Base Specification 2.0, 5.16.1.3). A drive without such a count
/// is too hot from the limit on that it names itself (hwmon's temp1_max).
pub(super) fn rule(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let kind = ReasonKind::Thermal;
    let cpu = evidence.count("cpu.thermal_throttles").unwrap_or(0);
    if cpu > 0 {
        let text = format!("CPUs slowed themselves down {cpu} times for their temperature");
        return Some(VerdictReason::found(
            kind,
            text,
            [("cpu_throttles", cpu as f64)],
        ));
    }
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices.find_map(|device| {
        let gauge = |figure: &str| Some(evidence.gauge(&format!("{device}.{figure}"))?.max);
        let n = evidence
            .count(&format!("{device}.thermal_transitions"))
            .unwrap_or(0);
        let (celsius, most) = (gauge("celsius"), gauge("most_celsius"));
        let is_hot = celsius
            .zip(most)
            .is_some_and(|(celsius, most)| celsius >= most && most > 0.0);
        if n == 0 && !is_hot {
            return None;
        }
        let at = celsius.map_or_else(String::new, |celsius| format!(", at up to {celsius:.0} °C"));
        let text = match n {
            0 => format!("{device} was as hot as it may be{at}"),
            n => format!("{device} slowed itself down {n} times for its temperature{at}"),
        };
        let numbers = [
            ("transitions", n as f64),
            ("celsius", celsius.unwrap_or(f64::NAN)),
        ];
        Some(VerdictReason::found(kind, text, numbers))
    })
}
