"""Which test stands for which reported fault of other RLM engines.

Numbers are those of the survey of engines that the design rests on (its faults marked R).
`tests/test_fault_table.py` fails when a required number has no test or names one that does not exist.
"""

from __future__ import annotations

REQUIRED = (
    *(1, 2, 3, 4, 6, 7, 8, 9, 10, 13, 14, 18, 20, 21, 22, 23, 24, 25, 26, 28, 29),
    *(30, 31, 32, 33, 34, 36, 37, 38, 41, 44, 45),
)

_FAULTS = "tests/rlm_core/test_faults_of_others.py::"
_RECURSION = "tests/rlm_core/test_recursion.py::"
_BUDGETS = "tests/end_to_end/test_budgets.py::"

TESTS: dict[int, tuple[str, ...]] = {
    1: (_FAULTS + "test_two_runs_in_threads_do_not_share_a_working_directory",),
    2: (_FAULTS + "test_code_in_tool_call_markup_is_executed",),
    3: (_FAULTS + "test_a_reply_without_content_does_not_end_the_run",),
    4: (_FAULTS + "test_a_reply_of_reasoning_only_is_survived_and_named",),
    6: (_FAULTS + "test_a_paid_answer_survives_an_exception_in_its_cell",),
    7: (_FAULTS + "test_invented_output_and_an_answer_in_prose_are_ignored",),
    8: (_FAULTS + "test_final_takes_the_value_not_the_name",),
    9: (_BUDGETS + "test_three_children_share_one_budget",),
    10: (_FAULTS + "test_a_prompt_beyond_the_models_window_is_a_typed_error",),
    13: (_FAULTS + "test_a_refused_answer_is_not_taken_over_by_a_later_cell",),
    14: (_FAULTS + "test_overwritten_repl_names_come_back",),
    18: (_FAULTS + "test_one_failed_prompt_keeps_the_others_of_its_batch",),
    20: (_FAULTS + "test_an_empty_block_is_a_cell_that_does_nothing",),
    21: (_FAULTS + "test_printed_fences_do_not_corrupt_the_next_prompt",),
    22: (
        _FAULTS + "test_values_cross_the_process_boundary_exactly",
        _FAULTS + "test_not_a_number_is_an_answer",
    ),
    23: ("tests/rlm_core/test_texts_worker.py::test_a_text_of_more_than_128_mb_is_asked_about_by_file",),
    24: (_FAULTS + "test_an_endless_loop_is_interrupted_and_its_state_stays",),
    25: (
        "tests/rlm_core/test_tools.py::test_the_reply_rests_on_what_the_tool_said",
        "tests/rlm_core/test_tools.py::"
        "test_a_sync_function_that_returns_a_coroutine_gives_its_result_not_its_repr",
    ),
    26: (_FAULTS + "test_the_engine_runs_inside_a_running_event_loop",),
    28: (_FAULTS + "test_every_sub_call_has_a_token_cap",),
    29: (_FAULTS + "test_history_holds_the_reply_up_to_its_cell",),
    30: (
        _FAULTS + "test_generated_code_cannot_choose_the_server_or_the_key",
        _FAULTS + "test_generated_code_cannot_choose_a_foreign_model",
    ),
    31: (_RECURSION + "test_code_cannot_raise_the_depth_of_its_run_through_the_environment",),
    32: (
        _RECURSION + "test_child_runs_stand_in_line_and_are_no_runs_before_their_turn",
        _RECURSION + "test_a_tree_of_any_width_and_limit_comes_to_its_end",
    ),
    33: (_BUDGETS + "test_what_a_failed_child_used_is_counted_and_gone_from_the_budget",),
    34: (_FAULTS + "test_a_run_that_hits_its_limit_is_not_recorded_as_completed",),
    36: (_FAULTS + "test_printing_the_whole_context_reaches_neither_the_root_nor_the_record_in_full",),
    37: (
        _BUDGETS + "test_a_call_is_reserved_for_before_it_leaves",
        _BUDGETS + "test_what_is_in_flight_when_the_budget_ends_is_all_that_exceeds_it",
    ),
    38: (_FAULTS + "test_an_empty_reply_cut_by_length_is_an_error_not_an_empty_text",),
    41: ("tests/rlm_core/test_sandbox.py::test_generated_code_finds_no_key_and_opens_no_socket",),
    44: (
        "tests/traces/test_record_size.py::"
        "test_bytes_per_iteration_depend_neither_on_its_number_nor_on_the_size_of_the_corpus",
    ),
    45: ("tests/traces/test_cost_properties.py::test_spans_run_and_every_grouping_add_up_to_the_last_digit",),
}
