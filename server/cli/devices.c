/* SPDX-License-Identifier: MIT */
/* The command `pte devices`. */
#include "config.h"

#include "hal/device.h"
#include "server/cli/cli.h"
#include "server/cli/option.h"

#define TEXT_BYTES_MAX 65536

static enum status list(int argc, char *const argv[], struct error *err)
{
    struct buf out;
    TRY(cli_option_parse(&cli_devices_command, argc, argv, NULL, err));
    buf_init(&out, TEXT_BYTES_MAX);
    hal_device_list(&out);
    enum status status = cli_write(&out, err);
    buf_fini(&out);
    return status;
}

static int run(int argc, char *const argv[])
{
    struct error err;
    return cli_finish(&cli_devices_command, list(argc, argv, &err), &err);
}

const struct cli_command cli_devices_command = {
    .name = "devices",
    .usage = "devices",
    .summary = "what programs can run on",
    .about =
        "Lists the devices of this machine, as --device takes them, and what kernels find there.\n",
    .after = "Example:\n"
             "  pte devices\n",
    .run = run,
};
