/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/build_id.h"

#include <elf.h>
#include <link.h>

/* Names and contents of notes are padded to words (elf(5)). */
static size_t padded(size_t len)
{
    return (len + 3) & ~(size_t)3;
}

static struct span find_note(struct span notes)
{
    ElfW(Nhdr) head;
    while (notes.len > sizeof(head)) {
        memcpy(&head, notes.ptr, sizeof(head));
        size_t name = padded(head.n_namesz), content = padded(head.n_descsz);
        if (name + content > notes.len - sizeof(head)) {
            break;
        }
        const uint8_t *text = notes.ptr + sizeof(head);
        if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == sizeof(ELF_NOTE_GNU) &&
            memcmp(text, ELF_NOTE_GNU, sizeof(ELF_NOTE_GNU)) == 0) {
            return span_of(text + name, head.n_descsz);
        }
        size_t whole = sizeof(head) + name + content;
        notes = span_of(notes.ptr + whole, notes.len - whole);
    }
    return span_of(NULL, 0);
}

/* The first object is the program itself. */
static int look(struct dl_phdr_info *object, size_t bytes, void *out_id)
{
    (void)bytes;
    struct span *id = out_id;
    for (ElfW(Half) i = 0; i < object->dlpi_phnum && id->len == 0; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_NOTE) {
            union {
                ElfW(Addr) from;
                const uint8_t *to;
            } cast = {.from = object->dlpi_addr + part->p_vaddr};
            *id = find_note(span_of(cast.to, part->p_memsz));
        }
    }
    return 1;
}

struct span build_id(void)
{
    struct span id = {NULL, 0};
    dl_iterate_phdr(look, &id);
    return id;
}
