/* SPDX-License-Identifier: MIT */
/* Logs a model when it has been loaded. Any thread that loads. */
#ifndef PTED_SERVER_MODEL_MODEL_LOG_H
#define PTED_SERVER_MODEL_MODEL_LOG_H

struct error;
struct hal_device;
struct model;

/*
 * Writes one line: its inputs and outputs, its memory, the time that it took to load, and to plan a
 * call of the largest shapes, which this does and, of a model that has no others, keeps. Or why it
 * cannot be called.
 */
void model_log(const struct model *model, const struct hal_device *device);

/* Call when it has been tried: whether its requests run as batches. |why_not_more|: why not more
 * rows of them; NULL: there are no more. A warning if tries find no time to go on. Loop thread. */
void model_log_batches(const struct model *model, const struct error *why_not_more);

#endif
