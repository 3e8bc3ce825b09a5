//! Runs every model.

use hedgerow_agent_loom::models;

macro_rules! run {
    ($($test:ident: $model:ident,)*) => {
        $(
            #[test]
            fn $test() {
                models::$model();
            }
        )*
    };
}

run! {
    loom_a_token_is_taken_once: token_bucket,
    loom_a_lowered_cap_holds_at_once: lowered_cap,
    loom_an_ended_turn_pays_nothing: turn_ends,
    loom_one_holder_is_the_last: permit_ends_once,
    loom_a_slot_given_back_elsewhere_is_never_taken_twice: slot_is_given_back_from_elsewhere,
    loom_b15_two_hedges_never_share_a_place: two_hedges_for_one_place,
    loom_p13_a_sample_is_read_once: single_writer_and_reader,
    loom_p12_counters_are_read_in_order: ordered_counters,
    loom_a_lane_changes_hands_without_a_loss: lane_changes_hands,
    loom_a_shared_lane_loses_nothing: shared_lane,
    loom_watched_losers_have_a_place_each: watch_places,
    loom_a_replicas_load_is_exact_at_rest: replicas_in_flight,
    b03_cancelled_as_the_timer_fires_nothing_is_left_and_nobody_locks: cancelled_as_the_timer_fires,
}
