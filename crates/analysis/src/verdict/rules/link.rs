//! The PCIe link: narrower or slower than it can be, or full.

use fathom_model::{EvidenceSum, ReasonKind, VerdictReason, units};

use crate::verdict::JudgedFigure;

/// From this share of what a link can carry on it is full: the rest is flow control and
/// acknowledgements (PCI Express Base Specification 5.0, 2.6 and 3.5).
const FULL_SHARE: f64 = 0.93;
/// Payload of a packet, in bytes, as most hosts set it, and what goes with it: framing,
/// sequence number, header and check (PCI Express Base Specification 5.0, 2.2 and 3.6).
const PAYLOAD_BYTES: f64 = 256.0;
const PACKET_BYTES: f64 = 24.0;

/// Speed and lanes that a device's link has now (the lowest while it was measured), and
/// can have.
fn link_of(evidence: &EvidenceSum, device: &str) -> Option<((f64, f64), (f64, f64))> {
    let gauge = |figure: &str| evidence.gauge(&format!("{device}.{figure}"));
    let now = (gauge("link_gts")?.min, gauge("link_lanes")?.min);
    let most = |figure: &str, now: f64| gauge(figure).map_or(now, |most| most.max);
    Some((
        now,
        (most("link_most_gts", now.0), most("link_most_lanes", now.1)),
    ))
}

/// Bytes of data that a link carries in a second, in one direction.
fn payload(gts: f64, lanes: f64) -> f64 {
    // 8b/10b up to 5 GT/s, 128b/130b above.
    let encoding = match gts <= 5.0 {
        true => 8.0 / 10.0,
        false => 128.0 / 130.0,
    };
    gts * 1e9 / 8.0 * lanes * encoding * PAYLOAD_BYTES / (PAYLOAD_BYTES + PACKET_BYTES)
}

pub(super) fn narrow(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices.find_map(|device| {
        let (now, most) = link_of(evidence, device)?;
        if now.0 >= most.0 && now.1 >= most.1 {
            return None;
        }
        let text = format!(
            "the link to {device} ran at {} GT/s x{}, and can do {} GT/s x{}",
            now.0, now.1, most.0, most.1
        );
        let numbers = [
            ("gts", now.0),
            ("lanes", now.1),
            ("most_gts", most.0),
            ("most_lanes", most.1),
        ];
        Some(VerdictReason::found(ReasonKind::LinkNarrow, text, numbers))
    })
}

/// A device's link in words, and the share of what it can carry that it carried in its
/// busier direction.
pub(in crate::verdict) fn link_use(
    figure: &JudgedFigure,
    evidence: &EvidenceSum,
    device: &str,
) -> Option<(String, f64)> {
    let ((gts, lanes), _) = link_of(evidence, device)?;
    let done = carried(figure, evidence, device)?;
    Some((
        format!("PCIe {gts} GT/s x{lanes}"),
        done / payload(gts, lanes),
    ))
}

/// Bytes a second that a device moved in its busier direction: each has wires of its own.
fn carried(figure: &JudgedFigure, evidence: &EvidenceSum, device: &str) -> Option<f64> {
    let ms = figure.io_ms(evidence);
    let bytes = ["read_bytes", "write_bytes"]
        .iter()
        .filter_map(|figure| evidence.count(&format!("{device}.{figure}")));
    Some(bytes.max()? as f64 * 1000.0 / ms)
}

pub(super) fn limit(figure: &JudgedFigure) -> Option<VerdictReason> {
    let evidence = figure.evidence()?;
    let mut devices = evidence.devices("target").chain(evidence.devices("under"));
    devices.find_map(|device| {
        let ((gts, lanes), _) = link_of(evidence, device)?;
        let most = payload(gts, lanes);
        let done = carried(figure, evidence, device)?;
        if done < FULL_SHARE * most {
            return None;
        }
        let text = format!(
            "the link to {device} carried {} of the {} that it can: the figure is the link's",
            units::bytes_per_second(done),
            units::bytes_per_second(most)
        );
        let numbers = [("bw_bytes", done), ("link_bw_bytes", most)];
        Some(VerdictReason::found(ReasonKind::LinkLimit, text, numbers))
    })
}
