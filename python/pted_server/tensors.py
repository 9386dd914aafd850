# SPDX-License-Identifier: MIT
"""Arrays as the bytes that pted reads and writes: little-endian, row by row, behind the JSON."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

# The name of a type in `call`: its name in `infer`.
DATATYPES = {"bool": "BOOL", "int8": "INT8", "int16": "INT16", "int32": "INT32", "int64": "INT64",
             "uint8": "UINT8", "uint16": "UINT16", "uint32": "UINT32", "uint64": "UINT64",
             "float16": "FP16", "bfloat16": "BF16", "float32": "FP32", "float64": "FP64"}
DTYPES = {datatype: dtype for dtype, datatype in DATATYPES.items()}
BINARY = {"dtype", "shape", "binary_data_size"}


class Data:
    """What follows the JSON of a request."""

    def __init__(self) -> None:
        self.parts: list[memoryview] = []

    def add(self, data: bytes | bytearray | memoryview) -> int:
        """Returns the bytes."""
        view = memoryview(data)
        if view.nbytes:
            self.parts.append(view.cast("B"))
        return view.nbytes


def dtype_name(array: Array) -> str:
    """Two raw bytes are a bfloat16, as numpy writes those of ml_dtypes to files."""
    name = str(array.dtype.name)
    name = "bfloat16" if name == "void16" else name
    if name not in DATATYPES:
        raise TypeError(f"expected an array of {', '.join(DATATYPES)}, got {name}")
    return name


def add_array(array: Array, data: Data) -> dict[str, Any]:
    """Appends the elements; returns what says how they lie: their bytes and, if dim 1 is innermost,
    that order."""
    order = {}
    if 3 <= array.ndim <= 5 and not array.flags.c_contiguous:
        turned = np.moveaxis(array, 1, -1)
        if turned.flags.c_contiguous:
            array, order = turned, {"order": "channels_last"}
    packed = np.ascontiguousarray(array)
    packed = packed.astype(packed.dtype.newbyteorder("<"), copy=False)
    return {"binary_data_size": data.add(packed.reshape(-1).view(np.uint8).data), **order}


def add_texts(array: Array, data: Data) -> int:
    """Elements of type BYTES: texts and bytes, each behind its length."""
    items = [item if isinstance(item, bytes) else str(item).encode()
             for item in array.reshape(-1).tolist()]
    return data.add(b"".join(len(item).to_bytes(4, "little") + item for item in items))


def is_array(value: Any) -> bool:
    """Arrays and numbers of numpy, and what can become one, such as tensors of PyTorch."""
    return hasattr(value, "__array__")


def to_json(value: Any, data: Data | None) -> Any:
    """A structure of arguments as JSON; without |data|, arrays have their shape alone."""
    if is_array(value):
        array = np.asarray(value)
        form = {"dtype": dtype_name(array), "shape": list(array.shape)}
        return form if data is None else {**form, **add_array(array, data)}
    if isinstance(value, (bytes, bytearray, memoryview)):  # a file
        return {"binary_data_size": data.add(value) if data else memoryview(value).nbytes}
    if isinstance(value, Mapping):
        return {str(key): to_json(item, data) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json(item, data) for item in value]
    return value


class Reader:
    """Takes arrays off the bytes behind the JSON of an answer, in the order of its text."""

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> memoryview:
        part = self.data[self.at:self.at + size]
        if len(part) != size:
            raise ConnectionError(f"the answer has {len(self.data)} bytes behind its JSON, "
                                  f"expected {self.at + size} or more")
        self.at += size
        return part

    def array(self, dtype: str, shape: list[int], size: int,
              order: str | None = None) -> Array:
        """It can be written to. bfloat16, which numpy lacks, becomes float32. |order| is that of
        the bytes in memory, which the array keeps."""
        if order == "channels_last":
            stored = self.array(dtype, [shape[0], *shape[2:], shape[1]], size)
            return np.moveaxis(stored, -1, 1)
        part = self.take(size)
        if dtype == "bfloat16":
            wide = np.frombuffer(part, "<u2").astype(np.uint32) << 16
            return wide.view(np.float32).reshape(shape)
        array = np.frombuffer(part, np.dtype(dtype).newbyteorder("<")).reshape(shape)
        return array if array.flags.aligned else array.copy()

    def texts(self, shape: list[int], size: int) -> Array:
        part, at, items = self.take(size), 0, []
        while at < size:
            end = at + 4 + int.from_bytes(part[at:at + 4], "little")
            items.append(bytes(part[at + 4:end]))
            at = end
        if at != size:
            raise ValueError(f"texts: expected {size} bytes, got {at}")
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array.reshape(shape)

    def from_json(self, value: Any) -> Any:
        """The structure of results, with arrays in the places of tensors."""
        if isinstance(value, list):
            return [self.from_json(item) for item in value]
        if not isinstance(value, dict):
            return value
        if value.keys() - {"order"} == BINARY:
            return self.array(value["dtype"], value["shape"], value["binary_data_size"],
                              value.get("order"))
        return {key: self.from_json(item) for key, item in value.items()}


def as_array(value: Any) -> Array:
    """Texts and bytes as objects: numpy's own types of them lose zeros at the end."""
    array = np.asarray(value)
    if array.dtype.kind in "SU" and not isinstance(value, np.ndarray):
        return np.asarray(value, dtype=object)
    return array


def infer_input(name: str, value: Any, data: Data) -> dict[str, Any]:
    """An entry of "inputs" of infer."""
    array = as_array(value)
    if array.dtype.kind in "OSU":
        datatype, stored = "BYTES", {"binary_data_size": add_texts(array, data)}
    else:
        datatype, stored = DATATYPES[dtype_name(array)], add_array(array, data)
    return {"name": name, "datatype": datatype, "shape": list(array.shape), "parameters": stored}


def infer_output(output: Mapping[str, Any], reader: Reader) -> Array:
    """An entry of "outputs" of infer."""
    datatype, shape = output["datatype"], output["shape"]
    size = output["parameters"]["binary_data_size"]
    if datatype == "BYTES":
        return reader.texts(shape, size)
    return reader.array(DTYPES[datatype], shape, size)
