//! What has ended in a run, for whoever kills it.

use serde_json::Value;

/// What has ended in a log, in order: steps with their figures, and stages with their
/// ends. What a stop has cut short in a stage is none of it.
pub fn ended(log: &str, has_figures: bool) -> Vec<Value> {
    let mut all = Vec::new();
    // The kind of the stage in progress, and the length of `all` before it.
    let mut stage = None;
    let (mut step, mut results) = (Value::Null, Value::Null);
    for line in log.lines() {
        let Ok(mut event) = serde_json::from_str::<Value>(line) else {
            continue;
        };
        match event["event"].as_str().unwrap_or_default() {
            "stage" => stage = Some((event["stage"]["kind"].take(), all.len())),
            "stage_ended" => {
                let is_switch = stage.take().is_some_and(|(kind, _)| kind == "switch");
                // What is switched is put back by each start that ends.
                all.extend((!is_switch).then(|| event["end"].take()));
            }
            "step" => step = serde_json::json!([event["name"], event["point"]]),
            "finished" if has_figures => results = event["results"].take(),
            "step_ended" if event["outcome"] == "complete" => {
                all.push(step.take());
                all.push(results.take());
            }
            "resumed" => {
                if let Some((_, length)) = stage.take() {
                    all.truncate(length);
                }
            }
            _ => {}
        }
    }
    all
}
