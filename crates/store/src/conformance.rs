//! What a store must do, as tests. A store crate enables the feature `conformance` among its
//! dev-dependencies and calls [`exercise`] with a way to open a fresh store; a behaviour that is
//! not here is not promised. [`ModelStore`] is the simplest store that passes, and an oracle.
//!
//! Cases drive [`Store::commit`] directly, with the kernel deciding, like the engine does.

mod bench;
mod differ;
mod dump;
mod model;
mod model_read;

mod backlog;
mod dlq;
mod door;
mod effects;
mod entities;
mod idempotency;
mod lease;
mod limits;
mod lists;
mod order;
mod reads;
mod registry;
mod report;
mod retry;
mod schedules;
mod submit;
mod time;
mod together;
mod triggers;
mod waits;

pub use bench::{Outcome, act, complete, fail, submit, token, wish};
pub use differ::differ;
pub use dump::dump;
pub use entities::any_command as any_entity_command;
pub use model::ModelStore;

use crate::store::Store;
use bench::Bench;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

type Case = for<'a> fn(&'a mut Bench) -> BoxFuture<'a, ()>;

macro_rules! cases {
    ($($module:ident: $($case:ident),+;)+) => {
        /// Every case under its name.
        const CASES: &[(&str, Case)] = &[$($((
            concat!(stringify!($module), "::", stringify!($case)),
            |bench| Box::pin($module::$case(bench)),
        )),+),+];
    };
}

cases! {
    submit: a_submitted_job_can_be_read, a_batch_is_visible_to_the_next_batch,
        commands_of_a_batch_see_each_other, an_empty_batch_changes_nothing,
        a_refused_command_leaves_the_others, every_field_of_a_job_is_kept;
    backlog: a_tenant_has_its_share_of_the_room, every_end_gives_its_room_back;
    lease: a_claim_is_visible, a_job_is_granted_once, a_heartbeat_moves_the_end_of_a_lease,
        a_heartbeat_is_not_a_move, leases_can_be_extended, running_lists_every_lease,
        a_claimed_job_in_the_same_batch_is_gone;
    report: a_result_is_kept, the_repeat_of_a_report_is_answered, another_report_is_a_conflict,
        a_stale_token_changes_nothing, a_cancelled_holder_is_told, history_has_no_gaps,
        a_partial_result_is_kept_of_the_last_try_only;
    retry: a_failed_job_waits_for_its_retry, a_retry_keeps_the_id_and_counts,
        a_released_job_is_ready_at_once, the_last_failure_is_kept;
    dlq: an_exhausted_job_becomes_an_item, items_are_listed_newest_first, an_item_is_requeued_once,
        a_discard_takes_two_people, broken_glass_stays_visible, a_half_finished_move_is_finished,
        items_are_filtered;
    door: a_stranger_sees_no_job_at_any_age, a_stranger_sees_no_item,
        what_json_can_spell_is_kept_to_the_letter,
        one_bad_text_spoils_no_neighbour, a_workers_last_word_is_kept_without_stray_bytes,
        the_past_gives_no_start, what_a_file_said_of_a_type_is_kept;
    effects: an_effect_is_committed_once, effects_survive_a_retry,
        effects_keep_their_order_through_everything_else, the_number_of_effects_is_bounded,
        the_bytes_of_effects_are_bounded, a_dead_letter_item_does_not_carry_effects;
    entities: an_entity_is_made_changed_and_removed, commands_of_a_batch_see_an_entity_as_it_is,
        entities_are_listed_by_owner_state_and_field, an_alarm_rings_once_and_is_set_anew,
        alarms_come_earliest_first_and_no_more_than_asked, a_firing_has_one_job,
        what_went_by_meanwhile_fires_once,
        a_firing_that_is_refused_is_counted_and_the_alarm_goes_on;
    order: old_jobs_outrank_urgent_ones_when_aged, due_order_goes_by_time_then_priority,
        equal_jobs_go_in_arrival_order, tenants_take_turns, a_pull_may_name_a_tenant,
        types_and_queues_filter, a_change_of_order_reorders_what_waits,
        untaken_jobs_are_ready_again, a_pull_goes_on_behind_a_job_its_batch_cancels,
        a_job_of_long_ago_counts_as_of_now;
    limits: a_global_limit_holds, a_tenant_limit_counts_each_tenant,
        a_user_limit_counts_each_user, every_way_out_frees_the_place, a_limit_of_zero_holds_all,
        a_changed_limit_counts_at_once, untaken_jobs_free_their_place,
        a_full_type_does_not_block_another, a_paused_queue_hands_out_nothing,
        a_batch_that_starts_over_takes_no_turn, a_pull_sees_the_limit_its_batch_sets,
        a_bucket_gives_its_burst_and_then_its_rate, each_key_has_a_bucket_of_its_own,
        a_token_is_spent_by_the_claim, a_limit_counts_each_key,
        a_full_key_hides_nobody_behind_it, who_holds_a_limit_is_told,
        keys_count_when_a_limit_is_set_later, a_paused_type_hands_out_nothing,
        a_circuit_opens_tries_one_and_closes,
        a_storm_of_retries_leaves_fresh_jobs_most_turns,
        a_wide_storm_of_retries_leaves_fresh_jobs_most_turns,
        retries_keep_their_place_in_due_order, tenants_take_turns_by_their_weight,
        a_paused_tenant_gets_nothing_and_others_all, a_tenant_may_have_so_many_and_no_more;
    idempotency: a_key_has_one_job_even_in_one_batch, a_key_is_held_while_the_job_lives,
        a_key_is_free_after_its_window, a_key_without_window_is_held_for_ever,
        a_conflict_is_noticed, a_new_holder_is_not_freed_by_the_old_job,
        a_chosen_name_has_one_job_even_in_one_batch, a_name_and_a_key_must_mean_the_same_job,
        a_chosen_name_outlives_the_key, a_hastened_job_is_ready_at_once;
    reads: unknown_things_are_none, lists_go_newest_first_in_pages, lists_are_filtered,
        lists_respect_the_scope, finished_jobs_stay_readable, counts_equal_a_recount,
        moves_come_in_order_without_gaps, standing_explains_the_wait;
    lists: every_filter_finds_what_it_admits, every_item_filter_finds_what_it_admits,
        strangers_do_not_thin_out_a_page,
        what_ends_between_two_pages_is_neither_missed_nor_repeated;
    time: a_job_is_not_ready_before_it_is_due, wake_tells_of_work_that_became_due,
        wake_names_the_next_instant, an_expired_lease_is_overdue, a_deadline_is_overdue,
        an_unstarted_job_expires, a_started_job_does_not_expire, a_heartbeat_postpones_the_reaper,
        overdue_respects_its_limit, a_clock_that_stands_still_is_no_trouble;
    schedules: a_schedule_is_kept_to_the_letter, a_firing_of_a_schedule_has_one_job,
        a_firing_has_one_job_though_its_key_is_forgotten,
        missed_firings_are_made_up_for_and_told, a_job_that_has_not_ended_holds_the_next_one_up,
        the_end_of_a_job_lets_the_next_one_go, what_runs_is_cancelled_by_the_commit_that_fires,
        failures_in_a_row_pause_a_schedule, a_schedule_outlives_its_jobs;
    together: parts_are_taken_all_or_none, parts_of_different_things_are_one_change,
        parts_that_touch_the_same_thing_are_refused, parts_share_one_room;
    triggers: an_edge_has_one_run_whoever_saw_it, a_scheduled_trigger_is_gone_when_it_has_fired,
        a_run_that_is_stuck_holds_its_trigger_up_no_longer;
    waits: a_job_that_waits_too_long_is_given_up, a_retry_that_waits_too_long_is_a_dead_letter,
        a_deadline_ends_a_job_wherever_it_stands, a_checkpoint_is_there_for_the_next_try,
        a_snooze_uses_no_try_and_has_an_end, a_job_waits_for_others,
        a_dependency_that_fails_cancels, a_lost_word_is_made_up_for, a_wait_outlives_no_job,
        foreign_jobs_cannot_be_waited_for, a_batch_is_followed, a_batch_is_taken_whole_or_not,
        a_batch_may_name_its_own_and_those_before, a_large_batch_is_looked_through;
    registry: types_are_kept_by_name, queues_are_kept_by_name, tokens_are_issued_and_revoked,
        a_token_ends_at_the_earlier_of_two_ends,
        a_type_is_seen_by_the_rest_of_its_batch;
}

/// Runs every case, each on a store of its own.
///
/// # Panics
/// If cases fail, with their names; the message of each failure is printed where it happened.
pub async fn exercise(open: &dyn Fn() -> BoxFuture<'static, Arc<dyn Store>>) {
    let mut failed = Vec::new();
    for (name, case) in CASES {
        let mut bench = Bench::new(open().await);
        let store = bench.store.clone();
        if AssertUnwindSafe(case(&mut bench)).catch_unwind().await.is_err() {
            failed.push(*name);
        }
        // What a broken case leaves behind is not worth a second failure.
        let _ = store.close().await;
    }
    assert!(failed.is_empty(), "{} of {} cases failed: {failed:#?}", failed.len(), CASES.len());
}

/// The names of all cases, in the order they run.
pub fn case_names() -> Vec<&'static str> {
    CASES.iter().map(|(name, _)| *name).collect()
}
