/* SPDX-License-Identifier: MIT */
/*
 * Counts the instructions that an emulated program executes, for tests/bench/arm.py: a plugin of
 * QEMU's user-mode emulator, which prints the count at the program's end, and those of functions
 * that have a symbol. Debian ships no header for plugins, so what is used of version 1 of the
 * interface is declared here. Source: QEMU, "QEMU TCG Plugins", docs/devel/tcg-plugins.rst, and the
 * interface that it describes.
 */
#include "config.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
#define ADD_U64 0 /* the only operation that is compiled into a block */

typedef uint64_t plugin_id;
struct block;
struct instruction;

void qemu_plugin_register_vcpu_tb_trans_cb(plugin_id id, void (*f)(plugin_id, struct block *));
void qemu_plugin_register_vcpu_tb_exec_inline(struct block *b, int op, void *to, uint64_t add);
void qemu_plugin_register_atexit_cb(plugin_id id, void (*f)(plugin_id, void *), void *data);
size_t qemu_plugin_tb_n_insns(const struct block *b);
struct instruction *qemu_plugin_tb_get_insn(const struct block *b, size_t i);
const char *qemu_plugin_insn_symbol(const struct instruction *i); /* NULL: none is known */

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(plugin_id id, const void *info, int argc, char **argv);

#define FUNCTIONS_MAX 4096

/* Counts are exact for one thread at a time. The last function is all that have no place. */
static struct function {
    const char *name;
    uint64_t count;
} functions[FUNCTIONS_MAX];

static struct function *function_of(const struct block *b)
{
    const char *name = qemu_plugin_insn_symbol(qemu_plugin_tb_get_insn(b, 0));
    struct function *f = functions;
    while (name && f->name && strcmp(f->name, name) != 0 && f < functions + FUNCTIONS_MAX - 1) {
        f++;
    }
    if (!name || f == functions + FUNCTIONS_MAX - 1) {
        return functions + FUNCTIONS_MAX - 1;
    }
    f->name = name;
    return f;
}

static void on_translated(plugin_id id, struct block *b)
{
    (void)id;
    qemu_plugin_register_vcpu_tb_exec_inline(b, ADD_U64, &function_of(b)->count,
                                             qemu_plugin_tb_n_insns(b));
}

static void on_exit_of(plugin_id id, void *data)
{
    uint64_t all = 0;
    (void)id;
    (void)data;
    for (const struct function *f = functions; f < functions + FUNCTIONS_MAX; f++) {
        all += f->count;
        if (f->count > 0) {
            fprintf(stderr, "function: %s %" PRIu64 "\n", f->name ? f->name : "?", f->count);
        }
    }
    fprintf(stderr, "instructions: %" PRIu64 "\n", all);
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
