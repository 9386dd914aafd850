/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/model_trial.h"

#include "base/check.h"

void model_trial_init(struct model_trial *trial, bool is_open)
{
    *trial = (struct model_trial){.is_open = is_open,
                                  .proven = RT_PROVEN_INIT,
                                  .rows = 1,
                                  .first_rows = 1,
                                  .tokens = 1,
                                  .mixed_rows = 1};
}

bool model_trial_insists(const struct model_trial *trial)
{
    return trial->tries == 0 || trial->vain >= MODEL_TRIAL_VAIN_MAX;
}

void model_trial_note(struct model_trial *trial, bool is_late, bool has_proven, uint64_t now_ms)
{
    must(trial->is_open);
    trial->tries++;
    if (!is_late) {
        trial->is_open = false;
        return;
    }
    trial->late_count++;
    trial->vain = has_proven ? 0 : trial->vain + 1;
    uint64_t pause_ms = MODEL_TRIAL_PAUSE_MS_MAX;
    if (trial->vain < MODEL_TRIAL_VAIN_MAX) {
        pause_ms = (uint64_t)MODEL_TRIAL_PAUSE_MS_MIN << trial->vain;
    } else if (trial->vain == MODEL_TRIAL_VAIN_MAX) {
        pause_ms = MODEL_TRIAL_PAUSE_MS_MIN; /* the next one insists */
    }
    trial->due_ms = now_ms + pause_ms;
}
