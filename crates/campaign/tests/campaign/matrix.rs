//! What the shipped definitions give.

use super::{Campaign, per_test};

#[test]
fn the_full_matrix_has_702_points() {
    let campaign = Campaign::new("all-tests");
    let plan = campaign.plan();
    let counts: Vec<(String, usize)> = per_test(&plan).into_iter().collect();
    let expected = [
        ("0001-basic-tests", 78),
        ("0002-iobatch", 336),
        ("0003-maxiobatch-single-job", 78),
        ("0004-maxiobatch-jobs", 210),
    ];
    assert_eq!(
        counts,
        expected.map(|(name, count)| (name.to_owned(), count))
    );
    assert_eq!(plan.steps.len(), 702);
}
