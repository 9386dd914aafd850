/* SPDX-License-Identifier: MIT */
/*
 * The table of grpc_schema.def: messages and their fields, enumerations, services and their
 * methods. Constants; any thread.
 */
#ifndef PTED_PROTOCOL_GRPC_SCHEMA_H
#define PTED_PROTOCOL_GRPC_SCHEMA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

/* Descriptors of fields have these numbers. */
enum grpc_type {
    GRPC_DOUBLE = 1,
    GRPC_FLOAT = 2,
    GRPC_INT64 = 3,
    GRPC_UINT64 = 4,
    GRPC_INT32 = 5,
    GRPC_BOOL = 8,
    GRPC_STRING = 9,
    GRPC_MESSAGE = 11,
    GRPC_BYTES = 12,
    GRPC_UINT32 = 13,
    GRPC_ENUM = 14,
};

enum grpc_label { GRPC_ONE, GRPC_CHOICE, GRPC_MANY, GRPC_MAP };

/* Who sends several messages. */
enum grpc_kind { GRPC_UNARY, GRPC_ANSWERS_MANY, GRPC_BOTH_MANY };

enum grpc_file { GRPC_INFERENCE, GRPC_HEALTH, GRPC_REFLECTION, GRPC_FILE_COUNT };

enum grpc_message {
#define MESSAGE(id, file, name, choice) GRPC_##id,
#include "protocol/grpc_schema.def"
    GRPC_MESSAGE_COUNT
};

enum grpc_enum {
#define ENUM(id, file, name) GRPC_##id,
#include "protocol/grpc_schema.def"
    GRPC_ENUM_COUNT
};

enum grpc_service {
#define SERVICE(name, file) GRPC_SERVICE_##name,
#include "protocol/grpc_schema.def"
    GRPC_SERVICE_COUNT
};

enum grpc_method {
#define METHOD(service, name, request, answer, kind) GRPC_METHOD_##name,
#include "protocol/grpc_schema.def"
    GRPC_METHOD_COUNT
};

/* The numbers of fields, for who reads a message by hand: GRPC_NUMBER_Message_field. */
enum grpc_number {
#define FIELD(message, name, number, type, label, ref) GRPC_NUMBER_##message##_##name = (number),
#include "protocol/grpc_schema.def"
};

/* Has no message and no enumeration. */
#define GRPC_NONE 0xffff

struct grpc_field_info {
    const char *name;
    uint32_t number;
    enum grpc_type type;
    enum grpc_label label;
    uint16_t ref; /* an enum grpc_message, of a map that of its values; or an enum grpc_enum */
};

struct grpc_message_info {
    const char *name;   /* in its package, behind the names of the messages around it */
    const char *choice; /* name of the choice between its fields; "": there is none */
    enum grpc_file file;
    const struct grpc_field_info *fields;
    uint32_t field_count;
};

struct grpc_value_info {
    const char *name;
    uint32_t number;
};

struct grpc_enum_info {
    const char *name;
    enum grpc_file file;
    const struct grpc_value_info *values;
    uint32_t value_count;
};

struct grpc_service_info {
    const char *name;
    enum grpc_file file;
};

struct grpc_method_info {
    const char *name;
    enum grpc_service service;
    enum grpc_message request, answer;
    enum grpc_kind kind;
};

struct grpc_message_info grpc_message_info(enum grpc_message message);
struct grpc_enum_info grpc_enum_info(enum grpc_enum id);
extern const struct grpc_service_info grpc_services[GRPC_SERVICE_COUNT];
extern const struct grpc_method_info grpc_methods[GRPC_METHOD_COUNT];

/* Finds a field by its name, or by its number; NULL: there is none. */
const struct grpc_field_info *grpc_find_name(const struct grpc_message_info *message,
                                             const char *name);
const struct grpc_field_info *grpc_find_number(const struct grpc_message_info *message,
                                               uint32_t number);

#endif
