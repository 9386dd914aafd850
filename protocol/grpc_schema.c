/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc_schema.h"

#include <string.h>

#include "base/check.h"

static const struct grpc_field_info fields[] = {
#define FIELD(message, name, number, type, label, ref)                                             \
    {#name, (number), GRPC_##type, GRPC_##label, GRPC_##ref},
#include "protocol/grpc_schema.def"
};

static const struct grpc_value_info values[] = {
#define VALUE(id, name, number) {#name, (number)},
#include "protocol/grpc_schema.def"
};

/* The place of the first field of each message: FIRST has its value, and the field takes it anew.
 */
enum field_place {
#define MESSAGE(id, file, name, choice) FIRST_##id, BEFORE_##id = FIRST_##id - 1,
#define FIELD(message, name, number, type, label, ref) PLACE_##message##_##name,
#include "protocol/grpc_schema.def"
    FIELDS_END
};

enum value_place {
#define ENUM(id, file, name) FIRST_##id, BEFORE_##id = FIRST_##id - 1,
#define VALUE(id, name, number) PLACE_##id##_##name,
#include "protocol/grpc_schema.def"
    VALUES_END
};

static const struct {
    const char *name, *choice;
    enum grpc_file file;
    uint32_t first;
} messages[] = {
#define MESSAGE(id, file, name, choice) [GRPC_##id] = {name, choice, GRPC_##file, FIRST_##id},
#include "protocol/grpc_schema.def"
    [GRPC_MESSAGE_COUNT] = {.first = FIELDS_END},
};

static const struct {
    const char *name;
    enum grpc_file file;
    uint32_t first;
} enums[] = {
#define ENUM(id, file, name) [GRPC_##id] = {name, GRPC_##file, FIRST_##id},
#include "protocol/grpc_schema.def"
    [GRPC_ENUM_COUNT] = {.first = VALUES_END},
};

const struct grpc_service_info grpc_services[GRPC_SERVICE_COUNT] = {
#define SERVICE(name, file) [GRPC_SERVICE_##name] = {#name, GRPC_##file},
#include "protocol/grpc_schema.def"
};

const struct grpc_method_info grpc_methods[GRPC_METHOD_COUNT] = {
#define METHOD(service, name, request, answer, kind)                                               \
    [GRPC_METHOD_##                                                                                \
        name] = {#name, GRPC_SERVICE_##service, GRPC_##request, GRPC_##answer, GRPC_##kind},
#include "protocol/grpc_schema.def"
};

struct grpc_message_info grpc_message_info(enum grpc_message message)
{
    must(message < GRPC_MESSAGE_COUNT);
    return (struct grpc_message_info){
        .name = messages[message].name,
        .choice = messages[message].choice,
        .file = messages[message].file,
        .fields = fields + messages[message].first,
        .field_count = messages[message + 1].first - messages[message].first,
    };
}

struct grpc_enum_info grpc_enum_info(enum grpc_enum id)
{
    must(id < GRPC_ENUM_COUNT);
    return (struct grpc_enum_info){
        .name = enums[id].name,
        .file = enums[id].file,
        .values = values + enums[id].first,
        .value_count = enums[id + 1].first - enums[id].first,
    };
}

const struct grpc_field_info *grpc_find_name(const struct grpc_message_info *message,
                                             const char *name)
{
    for (uint32_t i = 0; i < message->field_count; i++) {
        if (strcmp(message->fields[i].name, name) == 0) {
            return &message->fields[i];
        }
    }
    return NULL;
}

const struct grpc_field_info *grpc_find_number(const struct grpc_message_info *message,
                                               uint32_t number)
{
    for (uint32_t i = 0; i < message->field_count; i++) {
        if (message->fields[i].number == number) {
            return &message->fields[i];
        }
    }
    return NULL;
}
