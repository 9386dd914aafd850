/* SPDX-License-Identifier: MIT */
/*
 * YAML 1.1 files as other programs write them, as documents (server/process/document.h). libyaml
 * reads the file. Its events become a text of JSON, which is parsed as a document:
 *
 *     mapping    an object; a key that is no text is its text: "0" of {0: person}
 *     sequence   an array
 *     scalar     without quotes: null, true, false, or a number as JSON writes it; otherwise a text
 *     alias      the value of its anchor once more
 *
 * The file is hostile: its bytes, the depth, the number of anchors and the size of the text are
 * bounded. So an alias of aliases ends where the text has no room. A second document in the file,
 * an alias within its own anchor, and a key that is a list or a mapping are refused. Tags are
 * ignored. Blocks; any thread.
 */
#ifndef PTED_SERVER_PROCESS_YAML_H
#define PTED_SERVER_PROCESS_YAML_H

#include "base/bytes.h"
#include "base/status.h"
#include "server/process/document.h"

#define YAML_ANCHORS_MAX 64

/*
 * Reads the file at |path|; the limits are those of the file and of the text that it becomes.
 * Fails as document_open() does; lines in errors are those of the file. ST_UNSUPPORTED: libyaml is
 * missing. After a failure there is nothing to free.
 */
MUST_CHECK enum status yaml_open(const char *path, const struct document_limits *limits,
                                 struct document *out, struct error *err);

/* Does the same for a text in memory. */
MUST_CHECK enum status yaml_parse(struct span text, const struct document_limits *limits,
                                  struct document *out, struct error *err);

#endif
