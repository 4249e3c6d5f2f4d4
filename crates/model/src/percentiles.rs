//! Percentiles as programs want to look them up: an object from percent to ns.
//!
//! jq reads `.percentiles_ns["99.9"]`; a list of pairs would have to be searched.

use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserializer, Serializer};

type Pairs = Vec<(f64, u64)>;

/// Writes `{"50": ns, "99.9": ns}`: percents as short as they can be written, ascending.
///
/// # Errors
/// Those of the serializer.
pub fn serialize<S: Serializer>(pairs: &Pairs, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(pairs.len()))?;
    for (percent, ns) in pairs {
        map.serialize_entry(&percent.to_string(), ns)?;
    }
    map.end()
}

/// Reads it back in ascending order.
///
/// # Errors
/// When it is no object, or a key is no number.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Pairs, D::Error> {
    struct Object;
    impl<'de> Visitor<'de> for Object {
        type Value = Pairs;

        fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
            f.write_str("an object from percent to ns")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
            let mut pairs = Pairs::new();
            while let Some((key, ns)) = map.next_entry::<String, u64>()? {
                let percent = key
                    .parse::<f64>()
                    .ok()
                    .filter(|percent| (0.0..=100.0).contains(percent))
                    .ok_or_else(|| A::Error::custom(format!("not a percentile: {key}")))?;
                pairs.push((percent, ns));
            }
            pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
            Ok(pairs)
        }
    }
    deserializer.deserialize_map(Object)
}

#[cfg(test)]
mod tests {
    use crate::Latency;

    #[test]
    fn percentiles_are_an_object_and_read_back() {
        let latency = Latency {
            percentiles_ns: vec![(1.0, 5), (50.0, 70), (99.95, 800), (100.0, 900)],
            ..Latency::default()
        };
        let text = serde_json::to_string(&latency).unwrap();
        assert!(
            text.contains(r#""percentiles_ns":{"1":5,"50":70,"99.95":800,"100":900}"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Latency>(&text).unwrap(), latency);
        for wrong in ["NaN", "101", "-1", "p50"] {
            let text = text.replace("99.95", wrong);
            assert!(serde_json::from_str::<Latency>(&text).is_err(), "{wrong}");
        }
    }
}
