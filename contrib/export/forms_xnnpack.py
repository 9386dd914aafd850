# SPDX-License-Identifier: MIT
"""Payloads of the XNNPACK delegate that no exporter of today writes but that its schema allows, or
that exporters of the past wrote: made field by field and compiled by the flatc that ExecuTorch
brings. Each is one method of a bundled model, beside what it means in PyTorch."""
import importlib.resources
import json
import struct
import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import nn

from models import Case, Method, Model, model

NONE = 0xffffffff
F32, QINT8, QINT32, QCINT8, QCINT4, QDINT8, QBINT4 = "fp32", "qint8", "qint32", "qcint8", \
    "qcint4", "qdint8", "qbint4"
INPUT, OUTPUT = 1, 2
TRANSPOSE, SAME, KEEP_DIMS = 1, 4, 64


class Payload:
    """A graph that is being written. |is_old|: as the first exporters did it, without a header and
    with the constants inside of the flatbuffer; today they lie behind it."""

    def __init__(self, is_old=False, identifier="XN01"):
        self.is_old, self.identifier = is_old, identifier
        self.values, self.nodes, self.constants, self.externals = [], [], [b""], 0

    def constant(self, raw):
        self.constants.append(bytes(raw))
        return len(self.constants) - 1

    def value(self, dims, flags=0, datatype=F32, raw=None, quant=None, **more):
        """Returns the new value's id; |quant| is a pair, the type of parameters and they."""
        external = self.externals if flags else NONE
        self.externals += bool(flags)
        tensor = {"datatype": f"xnn_datatype_{datatype}", "num_dims": len(dims),
                  "dims": list(dims), "external_id": external, "flags": flags,
                  "id_out": len(self.values) + 7,
                  "constant_buffer_idx": self.constant(raw) if raw is not None else 0, **more}
        if quant:
            self.values.append({"xvalue_union_type": "XNNQuantizedTensorValue", "xvalue_union": {
                "tensor_value": tensor, "quant_params_type": quant[0], "quant_params": quant[1]}})
        else:
            self.values.append({"xvalue_union_type": "XNNTensorValue", "xvalue_union": tensor})
        return tensor["id_out"]

    def tensor(self, value, **more):
        return self.value(value.shape, raw=value.contiguous().numpy().tobytes(), **more)

    def node(self, kind, bounds=None, **fields):
        node = {"xnode_union_type": f"XNN{kind}", "xnode_union": fields}
        if bounds:
            node["output_min_max"] = dict(zip(("output_min", "output_max"), bounds))
        self.nodes.append(node)

    def flatbuffer(self, graph):
        from executorch.exir._serialize._flatbuffer import _flatc_compile
        package = importlib.resources.files("executorch.backends.xnnpack.serialization")
        schema = package.joinpath("runtime_schema.fbs").read_text()
        with tempfile.TemporaryDirectory() as folder:
            at = Path(folder)
            (at / "g.fbs").write_text(schema.replace('file_identifier "XN00"',
                                                     f'file_identifier "{self.identifier}"'))
            (at / "g.json").write_text(json.dumps(graph))
            _flatc_compile(folder, str(at / "g.fbs"), str(at / "g.json"))
            return (at / "g.bin").read_bytes()

    def write(self):
        graph = {"version": "0", "xnodes": self.nodes, "xvalues": self.values,
                 "num_externs": self.externals, "input_ids": [], "output_ids": []}
        behind = b""
        if self.is_old:
            graph["constant_buffer"] = [{"storage": list(raw)} for raw in self.constants]
            return self.flatbuffer(graph)
        graph["constant_data"] = []
        for raw in self.constants:
            graph["constant_data"].append({"offset": len(behind), "size": len(raw)})
            behind += raw + bytes(-len(raw) % 64)
        body = self.flatbuffer(graph)
        body += bytes(-len(body) % 16)
        header = struct.pack("<4s4sHIIIQ", b"\0" * 4, b"XH00", 30, 32, len(body), 32 + len(body),
                             len(behind))
        return header + bytes(2) + body + behind


class Form(nn.Module):
    """What a payload computes; the payload itself goes into the file in place of this."""

    def __init__(self, payload, function):
        super().__init__()
        self.payload, self.function = payload, function

    def forward(self, *args):
        return self.function(*args)


def partitioners(forms):
    """For each method one that gives its whole graph to the delegate, as the payload of |forms|."""
    from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
    from executorch.exir.backend.backend_details import PreprocessResult
    from executorch.exir.backend.compile_spec_schema import CompileSpec
    from executorch.exir.backend.partitioner import DelegationSpec, PartitionResult, Partitioner
    from executorch.exir.backend.utils import tag_constant_data
    payloads = {name: method.module.payload.write() for name, method in forms.methods.items()}

    class Whole(Partitioner):
        def __init__(self, name):
            super().__init__()
            self.delegation = DelegationSpec(XnnpackBackend.__name__,
                                       [CompileSpec("form", name.encode())])

        def partition(self, exported_program):
            for node in exported_program.graph.nodes:
                if node.op == "call_function":
                    node.meta["delegation_tag"] = "form"
            tag_constant_data(exported_program)
            return PartitionResult(exported_program, {"form": self.delegation})

    def preprocess(_program, specs):
        return PreprocessResult(processed_bytes=payloads[specs[0].value.decode()],
                                debug_handle_map={})
    XnnpackBackend.preprocess = staticmethod(preprocess)     # this program is the only one
    return {name: [Whole(name)] for name in payloads}


# ---- the forms ----------------------------------------------------------------------------------

FORMS = {}


def form(*shape):
    """A function that fills a payload and returns what it means, with the input's shape."""
    def register(function):
        FORMS[function.__name__] = (function, shape)
        return function
    return register


def window(kernel, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1)):
    """Padding is top, right, bottom, left."""
    return dict(zip(("padding_top", "padding_right", "padding_bottom", "padding_left"), padding),
                pooling_height=kernel[0], pooling_width=kernel[1], stride_height=stride[0],
                stride_width=stride[1], dilation_height=dilation[0], dilation_width=dilation[1])


def convolution(kernel, ins, outs, stride=(1, 1), padding=(0, 0, 0, 0), groups=1, extra=(0, 0)):
    return dict(zip(("padding_top", "padding_right", "padding_bottom", "padding_left"), padding),
                kernel_height=kernel[0], kernel_width=kernel[1], subsampling_height=stride[0],
                subsampling_width=stride[1], dilation_height=1, dilation_width=1,
                group_input_channels=ins, group_output_channels=outs, groups=groups,
                adjustment_height=extra[0], adjustment_width=extra[1])


def pixels(image):
    return image.permute(0, 2, 3, 1)


def planes(image):
    return image.permute(0, 3, 1, 2)


def pad(image, padding, value=0.0):
    """Of [N, C, H, W], in the file's order."""
    top, right, bottom, left = padding
    return F.pad(image, (left, right, top, bottom), value=value)


def average(image, kernel, stride, padding):
    ones = torch.ones(1, 1, *image.shape[2:])
    return (F.avg_pool2d(pad(image, padding), kernel, stride)
            / F.avg_pool2d(pad(ones, padding), kernel, stride))


@form(1, 6, 7, 3)
def average_uneven(p):
    x = p.value((1, 6, 7, 3), INPUT)
    y = p.value((1, 3, 4, 3), OUTPUT)
    padding = (1, 1, 0, 0)
    p.node("AvgPooling2d", input_id=x, output_id=y, **window((3, 2), (2, 2), padding))
    return lambda v: pixels(average(planes(v), (3, 2), (2, 2), padding))


@form(1, 6, 7, 3)
def average_same(p):
    x = p.value((1, 6, 7, 3), INPUT)
    y = p.value((1, 3, 4, 3), OUTPUT)
    p.node("AvgPooling2d", input_id=x, output_id=y, flags=SAME,
           **window((3, 3), (2, 2), dilation=(0, 0)))     # what exporters write there
    return lambda v: pixels(average(planes(v), (3, 3), (2, 2), (0, 1, 1, 1)))


@form(1, 5, 8, 2)
def conv_same(p):
    w, b = torch.randn(4, 3, 4, 2), torch.randn(4)
    x = p.value((1, 5, 8, 2), INPUT)
    filter_id, bias_id = p.tensor(w), p.tensor(b)
    y = p.value((1, 3, 4, 4), OUTPUT)
    p.node("Conv2d", (-1.0, 2.0), input1_id=x, filter_id=filter_id, bias_id=bias_id, output_id=y,
           flags=SAME, **convolution((3, 4), 2, 4, (2, 2)))
    return lambda v: pixels(F.conv2d(pad(planes(v), (1, 1, 1, 1)), planes(w), b, 2)).clamp(-1, 2)


@form(1, 4, 5, 3)
def deconv_cut_behind(p):
    """More is cut away behind than before."""
    w, b = torch.randn(2, 3, 3, 3), torch.randn(2)
    x = p.value((1, 4, 5, 3), INPUT)
    filter_id, bias_id = p.tensor(w), p.tensor(b)
    y = p.value((1, 7, 10, 2), OUTPUT)
    p.node("ConvTranspose2d", input1_id=x, filter_id=filter_id, bias_id=bias_id, output_id=y,
           **convolution((3, 3), 3, 2, (2, 2), (0, 1, 2, 0)))
    return lambda v: pixels(F.conv_transpose2d(planes(v), w.permute(3, 0, 1, 2), b, 2))[
        :, :7, :10]


@form(1, 4, 6, 3)
def argmax_window(p):
    x = p.value((1, 4, 6, 3), INPUT)
    y = p.value((1, 2, 3, 3), OUTPUT)
    place = p.value((1, 2, 3, 3), 0, "int32")
    p.node("ArgMaxPooling2d", input_id=x, output_value_id=y, output_index_id=place,
           **dict(zip(("padding_top", "padding_right", "padding_bottom", "padding_left"), [0] * 4)),
           pooling_height=2, pooling_width=2)
    return lambda v: pixels(F.max_pool2d(planes(v), 2))


def nibbles(w):
    """Rows of numbers from -8 to 7, two a byte."""
    stored = (w + 8).to(torch.uint8)
    return (stored[:, 0::2] | stored[:, 1::2] << 4).numpy().tobytes()


def quantize_rows(v):
    """As XNNPACK does it, and back."""
    low, high = v.amin(-1, True).clamp(max=0), v.amax(-1, True).clamp(min=0)
    scale = torch.where(low == high, 1.0, 255.0 / (high - low))
    zero = torch.where((-128 + low * scale) + (127 + high * scale) > 0, -128 - low * scale,
                       127 - high * scale).clamp(-128, 127).round()
    return ((v * scale + zero).round().clamp(-128, 127) - zero) / scale


@form(3, 64)
def groups_inline(p):
    """Scales of groups as floats in the flatbuffer, to be cut to bf16; rows by dq_datatype."""
    w, scales = torch.randint(-8, 8, (6, 64)), torch.rand(6, 2) * 0.1 + 0.05
    x = p.value((3, 64), INPUT, dq_datatype="xnn_datatype_qint8")
    filter_id = p.value((6, 64), datatype=QBINT4, raw=nibbles(w), quant=("PerChannelGroupQuant", {
        "scale": scales.flatten().tolist(), "channel_dim": 0, "group_size": 32}))
    y = p.value((3, 6), OUTPUT)
    p.node("FullyConnected", input1_id=x, filter_id=filter_id, bias_id=NONE, output_id=y)
    cut = (scales * 1.00389105).view(torch.int32).bitwise_and(-65536).view(torch.float32)
    real = (w.reshape(6, 2, 32) * cut[:, :, None]).reshape(6, 64)
    return lambda v: quantize_rows(v) @ real.T


@form(3, 8)
def channels_inline(p):
    """Scales of channels in the flatbuffer."""
    w, scales = torch.randint(-127, 128, (8, 5), dtype=torch.int8), torch.rand(5) * 0.1
    x = p.value((3, 8), INPUT)
    rows = p.value((3, 8), datatype=QDINT8, quant=("PerTokenDynamicQuant",
                                                   {"num_nonbatch_dims": 1}))
    filter_id = p.value((5, 8), datatype=QCINT8, raw=w.T.contiguous().numpy().tobytes(),
                        quant=("PerChannelQuant", {"scale": scales.tolist(), "channel_dim": 0}))
    y = p.value((3, 5), OUTPUT)
    p.node("Convert", input_id=x, output_id=rows)
    p.node("FullyConnected", (0.0, 3.0), input1_id=rows, filter_id=filter_id, bias_id=NONE,
           output_id=y)
    return lambda v: (quantize_rows(v) @ (w * scales)).clamp(0, 3)


@form(2, 6)
def chain_of_past(p):
    """A graph of the first exporters: no header, constants inside, scalars without dims."""
    w, b = torch.randn(6, 4), torch.randn(4)
    x = p.value((2, 6), INPUT)
    filter_id, bias_id, two = p.tensor(w), p.tensor(b), p.tensor(torch.tensor(2.0))
    linear, y = p.value((2, 4)), p.value((2, 4), OUTPUT)
    p.node("FullyConnected", (0.0, float(1 << 20)), input1_id=x, filter_id=filter_id,
           bias_id=bias_id, output_id=linear, flags=TRANSPOSE)
    p.node("Multiply", input1_id=linear, input2_id=two, output_id=y)
    return lambda v: F.relu(v @ w + b) * 2


@form(2, 3, 4, 8)
def pixels_as_rows(p):
    """A convolution of single pixels has rows of pixels, though the file says of images."""
    w, scales = torch.randint(-127, 128, (5, 8), dtype=torch.int8), torch.rand(5, 1) * 0.1
    x = p.value((2, 3, 4, 8), INPUT)
    rows = p.value((2, 3, 4, 8), datatype=QDINT8, quant=("PerTokenDynamicQuant",
                                                         {"num_nonbatch_dims": 3}))
    filter_id = p.value((5, 1, 1, 8), datatype=QCINT8, raw=w.numpy().tobytes(),
                        quant=("PerChannelQuant", {"scale": scales.flatten().tolist(),
                                                   "channel_dim": 0}))
    y = p.value((2, 3, 4, 5), OUTPUT)
    p.node("Convert", input_id=x, output_id=rows)
    p.node("Conv2d", input1_id=rows, filter_id=filter_id, bias_id=p.tensor(torch.zeros(5)),
           output_id=y, **convolution((1, 1), 8, 5))
    return lambda v: quantize_rows(v) @ (w * scales).T


OLD = {"groups_inline": "XN00", "chain_of_past": "XN00", "channels_inline": "XN01"}


@model
def xnn_forms():
    methods, cases = {}, []
    for name, (fill, shape) in FORMS.items():
        payload = Payload(name in OLD, OLD.get(name, "XN01"))
        module = Form(payload, fill(payload))
        calls = [(torch.randn(shape),) for _ in range(2)]
        methods[name] = Method(module, calls[0])
        cases += [Case(call, name) for call in calls]
    # ExecuTorch 1.4 gives the same for each, but dies of argmax_window.
    return Model("XNNPACK: payloads that today's exporter does not write", methods, cases,
                 backend="forms", is_replayed=False)
