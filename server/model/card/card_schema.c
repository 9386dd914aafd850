/* SPDX-License-Identifier: MIT */
/* The JSON Schema of a card, for programs that check documents: draft 2020-12. */
#include "config.h"

#include "server/model/card/card_schema.h"

#include <string.h>

#include "protocol/json.h"
#include "server/process/setting.h"

static const struct {
    const char *name, *schema, *doc;
    bool is_of_method;
} members[] = {
#define METHOD_MEMBER(name, schema, doc) {#name, schema, doc, true},
#define MEMBER(name, schema, doc) {#name, schema, doc, false},
#include "server/model/card/card.def"
};
#define MEMBER_COUNT (sizeof(members) / sizeof(members[0]))

static void print_member(const char *indent, size_t index, struct buf *out)
{
    buf_printf(out, "%s\"%s\": {\n%s  \"description\": ", indent, members[index].name, indent);
    json_print_string(out, span_str(members[index].doc));
    buf_printf(out, ",\n%s  %s\n%s}", indent, members[index].schema, indent);
}

/* Without "labels", which pted.json also has as a setting. */
void card_schema_print_members(const char *indent, struct buf *out)
{
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (strcmp(members[i].name, "labels") != 0) {
            buf_add_str(out, ",\n");
            print_member(indent, i, out);
        }
    }
}

static const char defs[] =
    "    \"labels\": {\n"
    "      \"oneOf\": [\n"
    "        {\"type\": \"string\", \"minLength\": 1},\n"
    "        {\n"
    "          \"type\": \"array\", \"items\": {\"type\": \"string\"},\n"
    "          \"minItems\": 1, \"maxItems\": 65536\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"name\": {\n"
    "      \"type\": \"string\",\n"
    "      \"pattern\": "
    "\"^(?!-)(?!(input|output)_[0-9]+$)[A-Za-z0-9_:-]+([.][A-Za-z0-9_:-]+)*$\",\n"
    "      \"maxLength\": 128\n"
    "    },\n"
    "    \"card_input\": {\n"
    "      \"oneOf\": [\n"
    "        {\"type\": \"null\"},\n"
    "        {\"$ref\": \"#/$defs/name\"},\n"
    "        {\n"
    "          \"type\": \"object\",\n"
    "          \"properties\": {\n"
    "            \"name\": {\"$ref\": \"#/$defs/name\"},\n"
    "            \"description\": {\"type\": \"string\"},\n"
    "            \"image\": {\"$ref\": \"#/$defs/image\"},\n"
    "            \"sound\": {\"$ref\": \"#/$defs/sound\"},\n"
    "            \"text\": {\"$ref\": \"#/$defs/text\"}\n"
    "          },\n"
    "          \"additionalProperties\": false\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"sides\": {\n"
    "      \"oneOf\": [\n"
    "        {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65535},\n"
    "        {\n"
    "          \"type\": \"array\",\n"
    "          \"items\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65535},\n"
    "          \"minItems\": 2, \"maxItems\": 2\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"channels\": {\n"
    "      \"type\": [\"number\", \"array\"], \"items\": {\"type\": \"number\"},\n"
    "      \"minItems\": 1, \"maxItems\": 4\n"
    "    },\n"
    "    \"image\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"resize\": {\"$ref\": \"#/$defs/sides\"},\n"
    "        \"fit\": {\"enum\": [\"shorter\", \"stretch\", \"inside\", \"letterbox\"]},\n"
    "        \"interpolation\": {\"enum\": [\"nearest\", \"box\", \"bilinear\", \"bicubic\", "
    "\"lanczos\", \"linear\"]},\n"
    "        \"crop\": {\"$ref\": \"#/$defs/sides\"},\n"
    "        \"crop_rounding\": {\"enum\": [\"even\", \"down\"]},\n"
    "        \"fill\": {\n"
    "          \"type\": [\"integer\", \"array\"], \"minimum\": 0, \"maximum\": 255,\n"
    "          \"items\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 255},\n"
    "          \"minItems\": 3, \"maxItems\": 3\n"
    "        },\n"
    "        \"colors\": {\"enum\": [\"rgb\", \"bgr\", \"gray\"]},\n"
    "        \"scale\": {\"type\": \"number\"},\n"
    "        \"mean\": {\"$ref\": \"#/$defs/channels\"},\n"
    "        \"std\": {\"$ref\": \"#/$defs/channels\"},\n"
    "        \"layout\": {\"enum\": [\"nchw\", \"nhwc\"]},\n"
    "        \"draft\": {\"type\": \"boolean\"}\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"sound\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"rate\": {\"type\": \"integer\", \"minimum\": 1000, \"maximum\": 768000},\n"
    "        \"features\": {\"enum\": [\"samples\", \"log_mel\"]},\n"
    "        \"seconds\": {\"type\": \"number\", \"exclusiveMinimum\": 0, \"maximum\": 86400}\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"text\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"tokenizer\": {\"type\": \"string\", \"minLength\": 1},\n"
    "        \"max_tokens\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1048576},\n"
    "        \"pad\": {\"type\": \"boolean\"},\n"
    "        \"mask\": {\"type\": \"string\"},\n"
    "        \"types\": {\"type\": \"string\"}\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"card_step\": {\n"
    "      \"oneOf\": [\n"
    "        {\"enum\": [\"softmax\", \"sigmoid\", \"normalize\", \"arg_max\"]},\n"
    "        {\n"
    "          \"type\": \"object\",\n"
    "          \"properties\": {\n"
    "            \"softmax\": {\"$ref\": \"#/$defs/dim\"},\n"
    "            \"normalize\": {\"$ref\": \"#/$defs/dim\"},\n"
    "            \"arg_max\": {\"$ref\": \"#/$defs/dim\"},\n"
    "            \"pool\": {\"const\": \"mean\"},\n"
    "            \"threshold\": {\"type\": \"number\"}\n"
    "          },\n"
    "          \"additionalProperties\": false, \"minProperties\": 1, \"maxProperties\": 1\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"dim\": {\"type\": \"integer\", \"minimum\": -16, \"maximum\": 15},\n"
    "    \"picture\": {\"enum\": [\"sent\", \"shown\", \"model\"]},\n"
    "    \"share\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1},\n"
    "    \"answer\": {\n"
    "      \"oneOf\": [\n"
    "        {\"enum\": [\"classes\", \"boxes\", \"map\", \"text\"]},\n"
    "        {\n"
    "          \"type\": \"object\",\n"
    "          \"properties\": {\n"
    "            \"classes\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000},\n"
    "            \"boxes\": {\"$ref\": \"#/$defs/boxes\"},\n"
    "            \"map\": {\n"
    "              \"type\": \"object\",\n"
    "              \"properties\": {\"picture\": {\"$ref\": \"#/$defs/picture\"}},\n"
    "              \"additionalProperties\": false\n"
    "            },\n"
    "            \"text\": {\n"
    "              \"type\": \"object\",\n"
    "              \"properties\": {\"blank\": {\"type\": \"integer\", \"minimum\": 0}},\n"
    "              \"additionalProperties\": false\n"
    "            }\n"
    "          },\n"
    "          \"additionalProperties\": false, \"minProperties\": 1, \"maxProperties\": 1\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"boxes\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"form\": {\"enum\": [\"cxcywh\", \"xyxy\", \"xywh\"]},\n"
    "        \"order\": {\"enum\": [\"candidates_first\", \"candidates_last\"]},\n"
    "        \"relative\": {\"type\": \"boolean\"}, \"objectness\": {\"type\": \"boolean\"},\n"
    "        \"picture\": {\"$ref\": \"#/$defs/picture\"},\n"
    "        \"normalized\": {\"type\": \"boolean\"},\n"
    "        \"scores\": {\"type\": \"string\"}, \"classes\": {\"type\": \"string\"},\n"
    "        \"points\": {\"type\": \"array\", \"items\": {\"type\": \"integer\", \"minimum\": 1},"
    " \"minItems\": 2, \"maxItems\": 2},\n"
    "        \"angle\": {\"type\": \"boolean\"}, \"masks\": {\"type\": \"string\"},\n"
    "        \"class_count\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 65536},\n"
    "        \"background\": {\"type\": \"integer\", \"minimum\": 0},\n"
    "        \"score\": {\"$ref\": \"#/$defs/share\"}, \"iou\": {\"$ref\": \"#/$defs/share\"},\n"
    "        \"count\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 1000},\n"
    "        \"across_classes\": {\"type\": \"boolean\"}\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"card_output\": {\n"
    "      \"oneOf\": [\n"
    "        {\"type\": \"null\"},\n"
    "        {\"$ref\": \"#/$defs/name\"},\n"
    "        {\n"
    "          \"type\": \"object\",\n"
    "          \"properties\": {\n"
    "            \"name\": {\"$ref\": \"#/$defs/name\"},\n"
    "            \"description\": {\"type\": \"string\"},\n"
    "            \"labels\": {\"$ref\": \"#/$defs/labels\"},\n"
    "            \"steps\": {\n"
    "              \"type\": \"array\", \"maxItems\": 16,\n"
    "              \"items\": {\"$ref\": \"#/$defs/card_step\"}\n"
    "            },\n"
    "            \"answer\": {\"$ref\": \"#/$defs/answer\"}\n"
    "          },\n"
    "          \"additionalProperties\": false\n"
    "        }\n"
    "      ]\n"
    "    },\n"
    "    \"inputs\": {\n"
    "      \"type\": [\"array\", \"object\"], \"items\": {\"$ref\": \"#/$defs/card_input\"},\n"
    "      \"additionalProperties\": {\"$ref\": \"#/$defs/card_input\"}\n"
    "    },\n"
    "    \"outputs\": {\n"
    "      \"type\": [\"array\", \"object\"], \"items\": {\"$ref\": \"#/$defs/card_output\"},\n"
    "      \"additionalProperties\": {\"$ref\": \"#/$defs/card_output\"}\n"
    "    },\n"
    "    \"embedding\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"pooling\": {\"enum\": [\"mean\", \"cls\", \"last\", \"splade\", \"none\"]},\n"
    "        \"normalize\": {\"type\": \"boolean\"},\n"
    "        \"max_tokens\": {\"type\": \"integer\", \"minimum\": 1},\n"
    "        \"prefix\": {\"type\": \"string\"}\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"generation\": {\n"
    "      \"type\": \"object\",\n"
    "      \"properties\": {\n"
    "        \"temperature\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 100},\n"
    "        \"top_p\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1},\n"
    "        \"top_k\": {\"type\": \"integer\", \"minimum\": 0, \"maximum\": 16777216},\n"
    "        \"min_p\": {\"type\": \"number\", \"minimum\": 0, \"maximum\": 1},\n"
    "        \"repetition_penalty\": {\"type\": \"number\", \"minimum\": 0.01, \"maximum\": 100},\n"
    "        \"max_tokens\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 16777216},\n"
    "        \"tools\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63},\n"
    "        \"thinking\": {\n"
    "          \"type\": [\"string\", \"object\"], \"minLength\": 1, \"maxLength\": 63,\n"
    "          \"properties\": {\n"
    "            \"open\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63},\n"
    "            \"close\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63}\n"
    "          },\n"
    "          \"required\": [\"open\", \"close\"], \"additionalProperties\": false\n"
    "        },\n"
    "        \"infill\": {\n"
    "          \"type\": [\"string\", \"object\"], \"minLength\": 1, \"maxLength\": 63,\n"
    "          \"properties\": {\n"
    "            \"prefix\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63},\n"
    "            \"suffix\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63},\n"
    "            \"middle\": {\"type\": \"string\", \"minLength\": 1, \"maxLength\": 63}\n"
    "          },\n"
    "          \"required\": [\"prefix\", \"suffix\"], \"additionalProperties\": false\n"
    "        },\n"
    "        \"stop_token_ids\": {\n"
    "          \"type\": \"array\", \"maxItems\": 32,\n"
    "          \"items\": {\"type\": \"integer\", \"minimum\": 0}\n"
    "        }\n"
    "      },\n"
    "      \"additionalProperties\": false\n"
    "    },\n"
    "    \"warm_up\": {\n"
    "      \"type\": \"array\", \"maxItems\": 64,\n"
    "      \"items\": {\n"
    "        \"type\": \"object\",\n"
    "        \"properties\": {\n"
    "          \"shapes\": {\n"
    "            \"type\": \"object\",\n"
    "            \"additionalProperties\": {\n"
    "              \"type\": \"array\", \"items\": {\"type\": \"integer\", \"minimum\": 0}\n"
    "            }\n"
    "          },\n"
    "          \"args\": {\"type\": [\"array\", \"null\"]},\n"
    "          \"kwargs\": {\"type\": [\"object\", \"null\"]}\n"
    "        },\n"
    "        \"additionalProperties\": false,\n"
    "        \"if\": {\"required\": [\"shapes\"]}, \"then\": {\"maxProperties\": 1}\n"
    "      }\n"
    "    },\n";

void card_schema_print_defs(struct buf *out)
{
    bool is_first = true;
    buf_add_str(out, defs);
    buf_add_str(out, "    \"method\": {\n"
                     "      \"type\": \"object\",\n"
                     "      \"properties\": {\n");
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        if (members[i].is_of_method) {
            buf_add_str(out, is_first ? "" : ",\n");
            print_member("        ", i, out);
            is_first = false;
        }
    }
    buf_add_str(out, "\n      },\n"
                     "      \"additionalProperties\": false\n"
                     "    }");
}

void card_schema_print(struct buf *out)
{
    buf_add_str(out, "{\n"
                     "  \"$schema\": \"https://json-schema.org/draft/2020-12/schema\",\n"
                     "  \"title\": \"NAME.card.json\",\n"
                     "  \"description\": \"What people know of a model that pted serves\",\n"
                     "  \"type\": \"object\",\n"
                     "  \"properties\": {\n"
                     "    \"$schema\": {\"type\": \"string\"}");
    for (size_t i = 0; i < MEMBER_COUNT; i++) {
        buf_add_str(out, ",\n");
        print_member("    ", i, out);
    }
    for (uint32_t i = 0; i < setting_count; i++) {
        if (setting_is_of_card(&settings[i])) {
            buf_add_str(out, ",\n");
            setting_print_schema("    ", &settings[i], out);
        }
    }
    buf_add_str(out, "\n  },\n"
                     "  \"additionalProperties\": false,\n"
                     "  \"$defs\": {\n");
    card_schema_print_defs(out);
    buf_add_str(out, "\n  }\n}\n");
}
