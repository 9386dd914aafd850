/* SPDX-License-Identifier: MIT */
/* Settings of one model from a source: functions of settings_of_model, see
 * server/process/setting.h. |label| is "--data " or the like, for messages. */
#ifndef PTED_SERVER_PROCESS_OPTIONS_PRIV_H
#define PTED_SERVER_PROCESS_OPTIONS_PRIV_H

#include "server/process/options.h"

MUST_CHECK enum status options_add_path(struct options *options, struct option_model model,
                                        struct error *err);
MUST_CHECK enum status options_add_data(struct options *options, struct option_model data,
                                        struct error *err);
MUST_CHECK enum status options_add_card(struct options *options, struct option_model card,
                                        struct error *err);
MUST_CHECK enum status options_add_labels(struct options *options, struct option_model labels,
                                          struct error *err);
MUST_CHECK enum status options_add_tokenizer(struct options *options, struct option_model tokenizer,
                                             struct error *err);
MUST_CHECK enum status options_add_versions(struct options *options, struct option_model versions,
                                            struct error *err);

#endif
