/* SPDX-License-Identifier: MIT */
/*
 * Counts the instructions that an emulated program executes, for tests/bench/arm.py: a plugin of
 * QEMU's user-mode emulator, which prints the count at the program's end. Debian ships no header
 * for plugins, so what is used of version 1 of the interface is declared here. Source: QEMU, "QEMU
 * TCG Plugins", docs/devel/tcg-plugins.rst, and the interface that it describes.
 */
#include "config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

#define EXPORT __attribute__((visibility("default")))
#define ADD_U64 0 /* the only operation that is compiled into a block */

typedef uint64_t plugin_id;
struct block;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*f)(plugin_id, struct block *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *b, int op, void *to, uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*f)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct block *b);

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

static uint64_t count; /* exact for one thread at a time */

static void on_translated(plugin_id id, struct block *b)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(b, ADD_U64, &count, qemu_plugin_tb_n_insns(b));
}

static void on_exit_of(plugin_id id, void *data)
{
    (void)id;
    (void)data;
    fprintf(stderr, "instructions: %" PRIu64 "\n", count);
}

int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv)
{
    (void)info;
    (void)argc;
    (void)argv;
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
    qemu_plugin_register_atexit_cb(id, on_exit_of, NULL);
    return 0;
}
