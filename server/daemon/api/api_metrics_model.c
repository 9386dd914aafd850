/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/api/api_metrics_priv.h"

#include <string.h>

#include "runtime/program/held.h"
#include "runtime/program/program.h"
#include "runtime/sched/sched.h"
#include "server/daemon/infer/stats.h"
#include "server/language/generator.h"
#include "server/language/transcriber.h"

/* Nothing is said of a file that is loaded when it is called, until then. */
void api_metrics_put_model_ready(struct api_metrics_page *page, const struct model *model)
{
    enum model_state state = model_state(model);
    if (state == MODEL_READY || state == MODEL_FAILED) {
        api_metrics_add(page, state == MODEL_READY);
    }
}

/* A pipeline has no file. */
void api_metrics_put_model_load(struct api_metrics_page *page, const struct model *model)
{
    if (model->origin->load_ns) {
        prom_number(&page->prom, model->origin->load_ns, API_METRICS_NS);
    }
}

/* A file that is only listed keeps the time. */
void api_metrics_put_last_use(struct api_metrics_page *page, const struct model *model)
{
    if (model->stats) {
        prom_number(&page->prom, stats_last_ms(model->stats), API_METRICS_MS);
    }
}

void api_metrics_put_model_requests(struct api_metrics_page *page, const struct model *model)
{
    if (model->stats) {
        api_metrics_add_statuses(page, &model->stats->statuses, true);
    }
}

/* A histogram begins with the first call: most of many models may never be called, or never get
 * files. */
static bool has_times(const struct histogram *histogram)
{
    return histogram_count(histogram, &histogram_times) > 0;
}

static bool has_calls(const struct model *model)
{
    return model->stats && has_times(&model->stats->durations);
}

void api_metrics_put_model_duration(struct api_metrics_page *page, const struct model *model)
{
    if (has_calls(model)) {
        prom_histogram(&page->prom, &model->stats->durations, &histogram_times);
    }
}

void api_metrics_put_model_phases(struct api_metrics_page *page, const struct model *model)
{
    static const char *const names[MODEL_PHASE_COUNT] = {
        [MODEL_PHASE_PREPARE] = "prepare", [MODEL_PHASE_DECODE] = "decode",
        [MODEL_PHASE_QUEUE] = "queue",     [MODEL_PHASE_COMPUTE] = "compute",
        [MODEL_PHASE_ENCODE] = "encode",
    };
    size_t mark = prom_label_mark(&page->prom);
    for (int i = 0; has_calls(model) && i < MODEL_PHASE_COUNT; i++) {
        if (!has_times(&model->stats->phases[i])) {
            continue;
        }
        prom_label(&page->prom, "phase", span_str(names[i]));
        prom_histogram(&page->prom, &model->stats->phases[i], &histogram_times);
        prom_unlabel_to(&page->prom, mark);
    }
}

void api_metrics_put_model_batch(struct api_metrics_page *page, const struct model *model)
{
    if (has_calls(model)) {
        prom_histogram(&page->prom, &model->stats->rows, &histogram_rows);
    }
}

static bool has_tokens(const struct model *model)
{
    return model->generator || model->transcriber;
}

void api_metrics_put_rows_proven(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, (uint64_t)model->rows_max);
    }
}

void api_metrics_put_trial_open(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, model->trial_is_open);
    }
}

void api_metrics_put_trials_late(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, model->trials_late);
    }
}

void api_metrics_put_prompt_tokens(struct api_metrics_page *page, const struct model *model)
{
    if (has_tokens(model)) {
        api_metrics_add(page, counter_get(&model->stats->prompt_tokens));
    }
}

void api_metrics_put_prefix_hits(struct api_metrics_page *page, const struct model *model)
{
    if (model->generator) {
        api_metrics_add(page, counter_get(&model->stats->prefix_hits));
    }
}

void api_metrics_put_cached_tokens(struct api_metrics_page *page, const struct model *model)
{
    if (model->generator) {
        api_metrics_add(page, counter_get(&model->stats->cached_tokens));
    }
}

void api_metrics_put_draft_tokens(struct api_metrics_page *page, const struct model *model)
{
    if (model->generator) {
        api_metrics_add(page, counter_get(&model->stats->draft_tokens));
    }
}

void api_metrics_put_accepted_tokens(struct api_metrics_page *page, const struct model *model)
{
    if (model->generator) {
        api_metrics_add(page, counter_get(&model->stats->accepted_tokens));
    }
}

void api_metrics_put_answer_tokens(struct api_metrics_page *page, const struct model *model)
{
    if (has_tokens(model)) {
        api_metrics_add(page, counter_get(&model->stats->answer_tokens));
    }
}

void api_metrics_put_generations(struct api_metrics_page *page, const struct model *model)
{
    if (has_tokens(model)) {
        api_metrics_add(page, share_used(model->generator ? &model->generator->seats
                                                          : &model->transcriber->seats));
    }
}

void api_metrics_put_transcriptions(struct api_metrics_page *page, const struct model *model)
{
    if (model->transcriber) {
        api_metrics_add(page, counter_get(&model->stats->transcriptions));
    }
}

void api_metrics_put_sound(struct api_metrics_page *page, const struct model *model)
{
    if (model->transcriber) {
        prom_number(&page->prom, counter_get(&model->stats->sound_us), API_METRICS_US);
    }
}

void api_metrics_put_first_token(struct api_metrics_page *page, const struct model *model)
{
    if (has_tokens(model)) {
        prom_histogram(&page->prom, &model->stats->first_tokens, &histogram_times);
    }
}

void api_metrics_put_next_token(struct api_metrics_page *page, const struct model *model)
{
    if (has_tokens(model)) {
        prom_histogram(&page->prom, &model->stats->next_tokens, &histogram_times);
    }
}

void api_metrics_put_model_waiting(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, rt_sched_load(model->queue).waiting);
    }
}

void api_metrics_put_model_waiting_bytes(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, rt_sched_load(model->queue).waiting_bytes);
    }
}

void api_metrics_put_model_running(struct api_metrics_page *page, const struct model *model)
{
    if (model->queue) {
        api_metrics_add(page, rt_sched_load(model->queue).running);
    }
}

void api_metrics_put_model_memory(struct api_metrics_page *page, const struct model *model)
{
    if (model->pool) {
        api_metrics_add(page, api_metrics_pool(model->pool).held_bytes);
    }
}

void api_metrics_put_model_inputs(struct api_metrics_page *page, const struct model *model)
{
    if (model->method) {
        const struct rt_input_stats inputs = rt_method_input_stats(model->method);
        api_metrics_add_labelled(page, "how", "in_place", inputs.in_place);
        api_metrics_add_labelled(page, "how", "converted", inputs.converted);
    }
}

/* The methods that a pipeline calls have plans; the pipeline has none. */
static bool has_plans(const struct model *model)
{
    return model->method && rt_method_has_own_work(model->method);
}

void api_metrics_put_model_plans(struct api_metrics_page *page, const struct model *model)
{
    if (has_plans(model)) {
        api_metrics_add(page, rt_method_plan_stats(model->method).count);
    }
}

void api_metrics_put_model_weights(struct api_metrics_page *page, const struct model *model)
{
    if (has_plans(model)) {
        const struct rt_held_bytes held = rt_program_held(model->program);
        api_metrics_add_labelled(page, "kind", "own", held.own);
        api_metrics_add_labelled(page, "kind", "shared", held.shared);
    }
}

void api_metrics_put_model_plan_bytes(struct api_metrics_page *page, const struct model *model)
{
    if (has_plans(model)) {
        api_metrics_add(page, rt_method_plan_stats(model->method).bytes);
    }
}

void api_metrics_put_model_plan_looks(struct api_metrics_page *page, const struct model *model)
{
    if (has_plans(model)) {
        const struct rt_plan_stats plans = rt_method_plan_stats(model->method);
        api_metrics_add_labelled(page, "result", "hit", plans.found);
        api_metrics_add_labelled(page, "result", "miss", plans.made);
    }
}

/* Of step |index| and of later steps with its name. False: an earlier one has that name. Steps
 * without a name of their own have that of their model, which several may call. */
static bool sum_steps(const struct model *model, uint32_t index, struct rt_step_counts *out)
{
    *out = model_step_counts(model, index);
    for (uint32_t i = 0; i < model->step_count; i++) {
        const struct rt_step_counts counts = model_step_counts(model, i);
        if (i != index && strcmp(counts.name, out->name) == 0) {
            if (i < index) {
                return false;
            }
            out->count += counts.count;
            out->ns += counts.ns;
            out->failed_count += counts.failed_count;
        }
    }
    return true;
}

void api_metrics_put_steps(struct api_metrics_page *page, const struct model *model)
{
    size_t mark = prom_label_mark(&page->prom);
    for (uint32_t i = 0; model->method && i < model->step_count; i++) {
        struct rt_step_counts counts;
        if (!sum_steps(model, i, &counts)) {
            continue;
        }
        prom_label(&page->prom, "step", span_str(counts.name));
        prom_summary(&page->prom, counts.count, counts.ns, API_METRICS_NS);
        prom_unlabel_to(&page->prom, mark);
    }
}

void api_metrics_put_step_failures(struct api_metrics_page *page, const struct model *model)
{
    for (uint32_t i = 0; model->method && i < model->step_count; i++) {
        struct rt_step_counts counts;
        if (sum_steps(model, i, &counts)) {
            api_metrics_add_labelled(page, "step", counts.name, counts.failed_count);
        }
    }
}
