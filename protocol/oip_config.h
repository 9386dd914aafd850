/* SPDX-License-Identifier: MIT */
/*
 * A model's configuration as the protocol's model configuration extension has it: the JSON form of
 * Triton's ModelConfig message (model_config.proto), from which its clients learn whether a request
 * may have several samples and which parameters make sense. Members about things that pted lacks
 * (rate limits, warmup, ensembles) are left out, as the form allows.
 *
 * Loop thread or worker: no state is shared.
 */
#ifndef PTED_PROTOCOL_OIP_CONFIG_H
#define PTED_PROTOCOL_OIP_CONFIG_H

#include "base/buf.h"
#include "protocol/oip.h"

struct oip_model_config {
    const char *name, *platform, *backend;
    const char *instance_name; /* of its instances: where it runs */
    const struct oip_tensor_meta *inputs, *outputs;
    size_t input_count, output_count;
    int64_t batch_size_max; /* 0: dim 0 is not the number of samples. Above, dims do not have it */
    bool is_batched;        /* requests that wait may run as one */
    bool is_on_gpu;
    uint32_t running_max; /* requests that run at a time */
    uint64_t waiting_max; /* requests that wait */
    uint64_t delay_us;    /* that a request waits to be joined by others */
    uint64_t timeout_us;  /* of a request that does not say */
    uint32_t priorities, priority_default;
    uint64_t sequence_count_max;  /* 0: it has no state */
    uint64_t sequence_timeout_us; /* of a sequence without a request */
};

/* Fails only if the buffer is too small; then buf_failed() is true. */
void oip_print_config(struct buf *out, const struct oip_model_config *config);

#endif
