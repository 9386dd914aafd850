/* SPDX-License-Identifier: MIT */
/* The fields that are read of a program's flatbuffer, by id. Ids follow the order in
 * ExecuTorch's schema/program.fbs; a union takes one id for its tag and one for its table. */
#ifndef PTED_RUNTIME_PTE_SCHEMA_H
#define PTED_RUNTIME_PTE_SCHEMA_H

#include "runtime/pte/flatbuf.h"

#define FIELD(table, name, id) static const struct flatbuf_field table##_##name = {id, #name};

FIELD(program, version, 0)
FIELD(program, execution_plan, 1)
FIELD(program, constant_buffer, 2)
FIELD(program, backend_delegate_data, 3)
FIELD(program, segments, 4)
FIELD(program, constant_segment, 5)
FIELD(program, mutable_data_segments, 6)
FIELD(program, named_data, 7)

FIELD(buffer, storage, 0)
FIELD(inline_data, data, 0)
FIELD(segment, offset, 0)
FIELD(segment, size, 1)
FIELD(subsegment, segment_index, 0)
FIELD(subsegment, offsets, 1)
FIELD(named, key, 0)
FIELD(named, segment_index, 1)
FIELD(named, tensor_layout, 2) /* of a .ptd's */

/* A .ptd's root, from ExecuTorch's flat_tensor.fbs. */
FIELD(flat, version, 0)
FIELD(flat, segments, 1)
FIELD(flat, named_data, 2)
FIELD(layout, scalar_type, 0)
FIELD(layout, sizes, 1)
FIELD(layout, dim_order, 2)

FIELD(plan, name, 0)
FIELD(plan, container_meta_type, 1)
FIELD(plan, values, 2)
FIELD(plan, inputs, 3)
FIELD(plan, outputs, 4)
FIELD(plan, chains, 5)
FIELD(plan, operators, 6)
FIELD(plan, delegates, 7)
FIELD(plan, non_const_buffer_sizes, 8)
FIELD(plan, non_const_buffer_device, 9)

FIELD(container, encoded_inp_str, 0)
FIELD(container, encoded_out_str, 1)
FIELD(buffer_device, device_type, 1)
FIELD(operator, name, 0)
FIELD(operator, overload, 1)
FIELD(delegate, id, 0)
FIELD(delegate, processed, 1)
FIELD(delegate, compile_specs, 2)
FIELD(processed, location, 0)
FIELD(processed, index, 1)
FIELD(spec, key, 0)
FIELD(spec, value, 1)

FIELD(chain, instructions, 2)
FIELD(chain, stacktrace, 3)
FIELD(frames, items, 0)
FIELD(frame, filename, 0)
FIELD(frame, lineno, 1)
FIELD(frame, context, 3)
FIELD(instruction, instr_args, 0)
FIELD(kernel, op_index, 0)
FIELD(kernel, args, 1)
FIELD(call, delegate_index, 0)
FIELD(call, args, 1)
FIELD(move, move_from, 0)
FIELD(move, move_to, 1)
FIELD(jump, cond_value_index, 0)
FIELD(jump, destination_instruction, 1)
FIELD(free, value_index, 0)

FIELD(value, val, 0)
FIELD(scalar, val, 0) /* Int, Bool, Double and String */
FIELD(list, items, 0) /* all lists */
FIELD(tensor, scalar_type, 0)
FIELD(tensor, storage_offset, 1)
FIELD(tensor, sizes, 2)
FIELD(tensor, dim_order, 3)
FIELD(tensor, data_buffer_idx, 5)
FIELD(tensor, allocation_info, 6)
FIELD(tensor, layout, 7)
FIELD(tensor, shape_dynamism, 8)
FIELD(tensor, extra_tensor_info, 9)
FIELD(allocation, memory_id, 0)
FIELD(allocation, memory_offset_low, 1)
FIELD(allocation, memory_offset_high, 2)
FIELD(extra, mutable_data_segments_idx, 0)
FIELD(extra, fully_qualified_name, 1)
FIELD(extra, location, 2)
FIELD(extra, device_type, 3)
#undef FIELD

#endif
