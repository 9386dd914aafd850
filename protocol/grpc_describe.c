/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc_describe.h"

#include <pthread.h>
#include <string.h>

#include "base/check.h"
#include "protocol/grpc_json.h"
#include "protocol/grpc_schema.h"
#include "protocol/protobuf.h"

/* Numbers of fields of descriptor.proto. */
enum file_field { FILE_NAME = 1, FILE_PACKAGE, FILE_MESSAGE = 4, FILE_ENUM, FILE_SERVICE };
#define FILE_SYNTAX 12
enum message_field { MESSAGE_NAME = 1, MESSAGE_FIELD, MESSAGE_NESTED, MESSAGE_ENUM };
#define MESSAGE_OPTIONS 7
#define MESSAGE_CHOICE 8
#define OPTION_MAP_ENTRY 7
enum field_field { FIELD_NAME = 1, FIELD_NUMBER = 3, FIELD_LABEL, FIELD_TYPE, FIELD_TYPE_NAME };
#define FIELD_CHOICE 9
#define FIELD_JSON_NAME 10
enum label { LABEL_OPTIONAL = 1, LABEL_REPEATED = 3 };
enum method_field { METHOD_NAME = 1, METHOD_REQUEST, METHOD_ANSWER };
#define METHOD_ASKS_MANY 5
#define METHOD_ANSWERS_MANY 6

/* Name and package of each file that is described; two have the same messages. */
struct file {
    enum grpc_file id;
    const char *package, *name;
};

static const struct file files[] = {
    {GRPC_INFERENCE, "inference", "open_inference.proto"},
    {GRPC_HEALTH, "grpc.health.v1", "grpc/health/v1/health.proto"},
    {GRPC_REFLECTION, "grpc.reflection.v1alpha", "grpc/reflection/v1alpha/reflection.proto"},
    {GRPC_REFLECTION, "grpc.reflection.v1", "grpc/reflection/v1/reflection.proto"},
};

#define FILES (sizeof(files) / sizeof(files[0]))
#define DESCRIPTION_BYTES_MAX (64 << 10)

/* ---- fields ---------------------------------------------------------------------------------- */

/* The name behind the messages around it. */
static const char *last_name(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}

/* Is |name| directly in the message |parent|? NULL: in none. */
static bool is_in(const char *name, const char *parent)
{
    size_t len = parent ? strlen(parent) : 0;
    if (!parent) {
        return strchr(name, '.') == NULL;
    }
    return strncmp(name, parent, len) == 0 && name[len] == '.' && !strchr(name + len + 1, '.');
}

/* "response_stats" -> "responseStats", or "ResponseStats" for the entries of a map. */
static void put_camel(struct buf *out, const char *name, bool is_capital)
{
    for (; *name; name++) {
        if (*name == '_') {
            is_capital = true;
            continue;
        }
        bool is_letter = *name >= 'a' && *name <= 'z';
        buf_add_char(out, is_capital && is_letter ? (char)(*name - 'a' + 'A') : *name);
        is_capital = false;
    }
}

static void put_type_name(struct buf *out, const struct file *file, const char *name)
{
    size_t begun = protobuf_begin(out, FIELD_TYPE_NAME);
    buf_printf(out, ".%s.%s", file->package, name);
    protobuf_end(out, begun);
}

static void put_entry_name(struct buf *out, uint32_t number, const struct file *file,
                           const struct grpc_message_info *info,
                           const struct grpc_field_info *field)
{
    size_t begun = protobuf_begin(out, number);
    if (number == FIELD_TYPE_NAME) {
        buf_printf(out, ".%s.%s.", file->package, info->name);
    }
    put_camel(out, field->name, true);
    buf_add_str(out, "Entry");
    protobuf_end(out, begun);
}

static void put_reference(struct buf *out, const struct file *file,
                          const struct grpc_field_info *field)
{
    if (field->type == GRPC_MESSAGE) {
        put_type_name(out, file, grpc_message_info((enum grpc_message)field->ref).name);
    } else if (field->type == GRPC_ENUM) {
        put_type_name(out, file, grpc_enum_info((enum grpc_enum)field->ref).name);
    }
}

static void put_field(struct buf *out, const struct file *file,
                      const struct grpc_message_info *info, const struct grpc_field_info *field)
{
    bool is_many = field->label == GRPC_MANY || field->label == GRPC_MAP;
    size_t begun = protobuf_begin(out, MESSAGE_FIELD);
    protobuf_put_text(out, FIELD_NAME, field->name);
    protobuf_put_number(out, FIELD_NUMBER, field->number);
    protobuf_put_number(out, FIELD_LABEL, is_many ? LABEL_REPEATED : LABEL_OPTIONAL);
    protobuf_put_number(out, FIELD_TYPE, (uint64_t)field->type);
    if (field->label == GRPC_MAP) {
        put_entry_name(out, FIELD_TYPE_NAME, file, info, field);
    } else {
        put_reference(out, file, field);
    }
    if (field->label == GRPC_CHOICE) {
        protobuf_put_number(out, FIELD_CHOICE, 0);
    }
    size_t name = protobuf_begin(out, FIELD_JSON_NAME);
    put_camel(out, field->name, false);
    protobuf_end(out, name);
    protobuf_end(out, begun);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The message of an entry of a map: a key, which is a text, and a value. */
static void put_entry(struct buf *out, const struct file *file,
                      const struct grpc_message_info *info, const struct grpc_field_info *field)
{
    const struct grpc_field_info key = {"key", 1, GRPC_STRING, GRPC_ONE, GRPC_NONE};
    const struct grpc_field_info value = {"value", 2, GRPC_MESSAGE, GRPC_ONE, field->ref};
    size_t begun = protobuf_begin(out, MESSAGE_NESTED);
    put_entry_name(out, MESSAGE_NAME, file, info, field);
    put_field(out, file, info, &key);
    put_field(out, file, info, &value);
    size_t options = protobuf_begin(out, MESSAGE_OPTIONS);
    protobuf_put_number(out, OPTION_MAP_ENTRY, true);
    protobuf_end(out, options);
    protobuf_end(out, begun);
}

static void put_enums(struct buf *out, const struct file *file, const char *parent)
{
    for (int i = 0; i < GRPC_ENUM_COUNT; i++) {
        const struct grpc_enum_info info = grpc_enum_info((enum grpc_enum)i);
        if (info.file != file->id || !is_in(info.name, parent)) {
            continue;
        }
        size_t begun = protobuf_begin(out, parent ? MESSAGE_ENUM : FILE_ENUM);
        protobuf_put_text(out, 1, last_name(info.name));
        for (uint32_t v = 0; v < info.value_count; v++) {
            size_t value = protobuf_begin(out, 2);
            protobuf_put_text(out, 1, info.values[v].name);
            protobuf_put_number(out, 2, info.values[v].number);
            protobuf_end(out, value);
        }
        protobuf_end(out, begun);
    }
}

static void put_messages(struct buf *out, const struct file *file, const char *parent);

static void put_message(struct buf *out, const struct file *file,
                        const struct grpc_message_info *info)
{
    protobuf_put_text(out, MESSAGE_NAME, last_name(info->name));
    for (uint32_t i = 0; i < info->field_count; i++) {
        put_field(out, file, info, &info->fields[i]);
    }
    for (uint32_t i = 0; i < info->field_count; i++) {
        if (info->fields[i].label == GRPC_MAP) {
            put_entry(out, file, info, &info->fields[i]);
        }
    }
    put_messages(out, file, info->name);
    put_enums(out, file, info->name);
    if (*info->choice) {
        size_t begun = protobuf_begin(out, MESSAGE_CHOICE);
        protobuf_put_text(out, 1, info->choice);
        protobuf_end(out, begun);
    }
}

/* Messages in messages: two levels in the table. */
static void put_messages(struct buf *out, const struct file *file, const char *parent)
{
    for (int i = 0; i < GRPC_MESSAGE_COUNT; i++) {
        const struct grpc_message_info info = grpc_message_info((enum grpc_message)i);
        if (info.file == file->id && is_in(info.name, parent)) {
            size_t begun = protobuf_begin(out, parent ? MESSAGE_NESTED : FILE_MESSAGE);
            put_message(out, file, &info);
            protobuf_end(out, begun);
        }
    }
}

/* ---- services and files ---------------------------------------------------------------------- */

static void put_method(struct buf *out, const struct file *file,
                       const struct grpc_method_info *method)
{
    size_t begun = protobuf_begin(out, 2);
    protobuf_put_text(out, METHOD_NAME, method->name);
    const enum grpc_message types[] = {method->request, method->answer};
    for (uint32_t i = 0; i < 2; i++) {
        size_t name = protobuf_begin(out, METHOD_REQUEST + i);
        buf_printf(out, ".%s.%s", file->package, grpc_message_info(types[i]).name);
        protobuf_end(out, name);
    }
    if (method->kind == GRPC_BOTH_MANY) {
        protobuf_put_number(out, METHOD_ASKS_MANY, true);
    }
    if (method->kind != GRPC_UNARY) {
        protobuf_put_number(out, METHOD_ANSWERS_MANY, true);
    }
    protobuf_end(out, begun);
}

static void put_services(struct buf *out, const struct file *file)
{
    for (int i = 0; i < GRPC_SERVICE_COUNT; i++) {
        if (grpc_services[i].file != file->id) {
            continue;
        }
        size_t begun = protobuf_begin(out, FILE_SERVICE);
        protobuf_put_text(out, 1, grpc_services[i].name);
        for (int m = 0; m < GRPC_METHOD_COUNT; m++) {
            if (grpc_methods[m].service == (enum grpc_service)i) {
                put_method(out, file, &grpc_methods[m]);
            }
        }
        protobuf_end(out, begun);
    }
}

static void put_file(struct buf *out, const struct file *file)
{
    protobuf_put_text(out, FILE_NAME, file->name);
    protobuf_put_text(out, FILE_PACKAGE, file->package);
    put_messages(out, file, NULL);
    put_enums(out, file, NULL);
    put_services(out, file);
    protobuf_put_text(out, FILE_SYNTAX, "proto3");
}

/* The descriptions, which never change; without memory for one it is made for each answer. */
static struct buf known[FILES];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void make_known(void)
{
    for (size_t i = 0; i < FILES; i++) {
        buf_init(&known[i], DESCRIPTION_BYTES_MAX);
        put_file(&known[i], &files[i]);
    }
}

static void put_known_file(struct buf *out, const struct file *file)
{
    pthread_once(&once, make_known);
    const struct buf *description = &known[file - files];
    if (buf_failed(description)) {
        put_file(out, file);
    } else {
        buf_add(out, description->ptr, description->len);
    }
}

/* ---- what clients ask ------------------------------------------------------------------------ */

/* Is |symbol| |name|, or in it: a field, a value or a method? */
static bool names(struct span symbol, const char *name)
{
    size_t len = strlen(name);
    return span_begins(symbol, name) && (symbol.len == len || symbol.ptr[len] == '.');
}

static bool has_symbol(const struct file *file, struct span symbol)
{
    size_t len = strlen(file->package);
    if (!names(symbol, file->package) || symbol.len <= len + 1) {
        return false;
    }
    symbol = span_of(symbol.ptr + len + 1, symbol.len - len - 1);
    for (int i = 0; i < GRPC_MESSAGE_COUNT; i++) {
        const struct grpc_message_info info = grpc_message_info((enum grpc_message)i);
        if (info.file == file->id && names(symbol, info.name)) {
            return true;
        }
    }
    for (int i = 0; i < GRPC_ENUM_COUNT; i++) {
        const struct grpc_enum_info info = grpc_enum_info((enum grpc_enum)i);
        if (info.file == file->id && names(symbol, info.name)) {
            return true;
        }
    }
    for (int i = 0; i < GRPC_SERVICE_COUNT; i++) {
        if (grpc_services[i].file == file->id && names(symbol, grpc_services[i].name)) {
            return true;
        }
    }
    return false;
}

static const struct file *find_file(uint32_t number, struct span asked)
{
    bool is_name = number == GRPC_NUMBER_ServerReflectionRequest_file_by_filename;
    for (size_t i = 0; i < FILES; i++) {
        if (is_name ? span_is(asked, files[i].name) : has_symbol(&files[i], asked)) {
            return &files[i];
        }
    }
    return NULL;
}

#define ASK(name) GRPC_NUMBER_ServerReflectionRequest_##name
#define ANSWER(name) GRPC_NUMBER_ServerReflectionResponse_##name

static void put_unknown(struct buf *out, struct span asked)
{
    size_t begun = protobuf_begin(out, ANSWER(error_response));
    protobuf_put_number(out, GRPC_NUMBER_ErrorResponse_error_code, 5); /* NOT_FOUND */
    size_t text = protobuf_begin(out, GRPC_NUMBER_ErrorResponse_error_message);
    buf_printf(out, "nothing is known of '%.*s'", SPAN_SHORT(asked));
    protobuf_end(out, text);
    protobuf_end(out, begun);
}

static void put_found_file(struct buf *out, const struct file *file)
{
    size_t begun = protobuf_begin(out, ANSWER(file_descriptor_response));
    size_t bytes = protobuf_begin(out, GRPC_NUMBER_FileDescriptorResponse_file_descriptor_proto);
    put_known_file(out, file);
    protobuf_end(out, bytes);
    protobuf_end(out, begun);
}

bool grpc_service_name(unsigned index, struct buf *out)
{
    for (size_t f = 0; f < FILES; f++) {
        for (int i = 0; i < GRPC_SERVICE_COUNT; i++) {
            if (grpc_services[i].file == files[f].id && index-- == 0) {
                buf_printf(out, "%s.%s", files[f].package, grpc_services[i].name);
                return true;
            }
        }
    }
    return false;
}

static void put_services_list(struct buf *out)
{
    size_t begun = protobuf_begin(out, ANSWER(list_services_response));
    bool is_there = true;
    for (unsigned i = 0; is_there; i++) {
        struct buf name;
        buf_init(&name, 256);
        is_there = grpc_service_name(i, &name);
        if (is_there) {
            size_t service = protobuf_begin(out, GRPC_NUMBER_ListServiceResponse_service);
            protobuf_put_bytes(out, GRPC_NUMBER_ServiceResponse_name, buf_span(&name));
            protobuf_end(out, service);
        }
        buf_fini(&name);
    }
    protobuf_end(out, begun);
}

/* proto3 has no extensions but those of options. */
static void put_extensions(struct buf *out, struct span type)
{
    size_t begun = protobuf_begin(out, ANSWER(all_extension_numbers_response));
    protobuf_put_bytes(out, GRPC_NUMBER_ExtensionNumberResponse_base_type_name, type);
    protobuf_end(out, begun);
}

static void put_answer(struct buf *out, const struct protobuf_field *asked)
{
    const struct file *file = find_file(asked->number, asked->bytes);
    if (asked->number == ASK(list_services)) {
        put_services_list(out);
    } else if (asked->number == ASK(all_extension_numbers_of_type) && file) {
        put_extensions(out, asked->bytes);
    } else if ((asked->number == ASK(file_by_filename) ||
                asked->number == ASK(file_containing_symbol)) &&
               file) {
        put_found_file(out, file);
    } else {
        put_unknown(out, asked->bytes);
    }
}

enum status grpc_reflect(struct span request, struct buf *out, struct error *err)
{
    struct protobuf in;
    struct protobuf_field field, asked = {.bytes = span_str("")};
    struct span host = span_str("");
    for (protobuf_init(&in, request); protobuf_next(&in, &field);) {
        if (field.number == ASK(host) && field.type == PROTOBUF_BYTES) {
            host = field.bytes;
        } else if (field.number <= ASK(list_services) && field.type == PROTOBUF_BYTES) {
            asked = field;
        }
    }
    if (in.is_wrong) {
        return grpc_refuse_message(GRPC_ServerReflectionRequest, err);
    }
    protobuf_put_bytes(out, ANSWER(valid_host), host);
    protobuf_put_bytes(out, ANSWER(original_request), request);
    put_answer(out, &asked);
    return buf_check(out, "the answer", err);
}
