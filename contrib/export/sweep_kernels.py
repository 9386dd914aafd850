# SPDX-License-Identifier: MIT
"""The kernel calls that PyTorch's own operator samples come down to, a method each.

sweep.py --kernels. A sample is run in eager PyTorch; each call of a primitive operator underneath
for which ExecuTorch has a kernel becomes a program's method with that one call in it, written
without an exporter: its tensors are inputs, everything else a constant. Thousands take minutes,
and every overload is called with what PyTorch itself calls it with. NAME.verdicts says of each
method what ExecuTorch's own runtime makes of it: agrees, differs, refuses or crashes.
"""

import math
import os
import re
from collections import defaultdict

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from executorch.exir import schema
from executorch.exir._serialize._program import PTEFile, serialize_pte_binary
from executorch.exir.tensor import scalar_type_enum
from executorch.extension.pybindings import portable_lib

import ops
import ops_case

BYTES_MAX = 1 << 16  # of a tensor
ALIGNMENT = 16
CREATION = ("dtype", "layout", "device", "pin_memory")  # of a tensor: out forms are given one
FOUND = ("aten::nonzero", "aten::masked_select")
BOUND_EXCESS = 3  # of a dynamic dim: how much larger its bound is than what a call uses


class Recorder(TorchDispatchMode):
    """Keeps every call of an operator, with its tensors as they were before it."""

    def __init__(self):
        super().__init__()
        self.calls = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        self.calls.append((func, *pytree.tree_map(copied, (args, kwargs))))
        return func(*args, **kwargs)


def copied(value):
    if not isinstance(value, torch.Tensor):
        return value
    return value.detach().clone(memory_format=torch.contiguous_format)


def functional(func, args):
    """The operator that exporters write for |func|: copies for views, numbers for 0-d tensors."""
    name, overload = func._schema.name.removeprefix("aten::"), func._overloadname
    packet = getattr(torch.ops.aten, name + "_copy", None)
    if packet and overload in packet.overloads():
        return getattr(packet, overload)
    takes_number = any(
        "Tensor" in str(want.type) and isinstance(arg, (int, float))
        for want, arg in zip(func._schema.arguments, args))
    if takes_number:
        number = overload.replace("Tensor", "Scalar")
        packet = getattr(torch.ops.aten, name)
        return getattr(packet, number) if number in packet.overloads() else None
    return func


def outs_of(overload):
    """The names of what a form writes into; none: it is functional."""
    return [arg.name for arg in overload._schema.arguments if arg.is_out]


def out_form(func):
    """The overload with the same arguments that writes what it is given, and is a kernel's name."""
    def names(overload):
        return [(arg.name, str(arg.type)) for arg in overload._schema.arguments
                if not arg.is_out and arg.name not in CREATION]
    packet = func.overloadpacket
    found = [getattr(packet, name) for name in packet.overloads()]
    return next((form for form in found if outs_of(form) and names(form) == names(func)), None)


class Plan:
    """One method: a call, its values, and where its tensors lie."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.values, self.inputs, self.tensors, self.end = [], [], [], 0

    def add(self, value):
        self.values.append(schema.EValue(value))
        return len(self.values) - 1

    def tensor(self, value, bound=None):
        """A planned tensor; |bound|: its largest sizes, if they vary."""
        sizes = list(bound or value.shape)
        order = list(range(len(sizes)))
        if self.options.channels_last and len(sizes) == 4:
            order = [0, 2, 3, 1]
        place = schema.AllocationDetails(1, self.end, 0)
        self.end += -(-max(1, math.prod(sizes) * value.element_size()) // ALIGNMENT) * ALIGNMENT
        dynamism = schema.TensorShapeDynamism(1 if bound else 0)
        return self.add(
            schema.Tensor(scalar_type_enum(value.dtype), 0, sizes, order, False, 0, 0, place,
                          dynamism))

    def input(self, value):
        bound = larger(value.shape) if self.options.dynamic else None
        self.inputs.append(self.tensor(value, bound))
        self.tensors.append(value)
        return self.inputs[-1]

    def argument(self, kind, value):
        """The index of a value for an argument of the schema's type |kind|."""
        kind = kind.removeprefix("Optional[").removesuffix("]") if "List" not in kind else kind
        if value is None:
            return self.add(schema.Null())
        if isinstance(value, torch.Tensor):
            return self.input(value)
        if isinstance(value, str):
            return self.add(schema.String(value))
        if isinstance(value, (list, tuple)):
            return self.list_argument(kind, value)
        if isinstance(value, bool):
            return self.add(schema.Bool(value))
        if isinstance(value, (torch.dtype, torch.memory_format)):
            number = int(scalar_type_enum(value)) if isinstance(value, torch.dtype) else 0
            return self.add(schema.Int(number))
        if isinstance(value, float) or kind == "float":
            return self.add(schema.Double(float(value)))
        if isinstance(value, int):
            return self.add(schema.Int(value))
        raise ValueError(f"{kind}: {type(value)}")

    def list_argument(self, kind, value):
        if "Optional[Tensor]" in kind:
            items = [-1 if v is None else self.input(v) for v in value]
            return self.add(schema.OptionalTensorList(items))
        if "Tensor" in kind:
            return self.add(schema.TensorList([self.input(v) for v in value]))
        if "float" in kind:
            return self.add(schema.DoubleList([float(v) for v in value]))
        if "bool" in kind:
            return self.add(schema.BoolList(list(value)))
        return self.add(schema.IntList([self.add(schema.Int(int(v))) for v in value]))

    def result(self, call, expected):
        """The kernel's arguments for what it writes, and the method's outputs."""
        bounds = [None] * len(expected)
        if self.options.dynamic:
            bounds = call.bounds()
        if call.func._schema.name in FOUND:  # how many there are depends on data: a bound, then
            most = math.prod(torch.broadcast_shapes(*(t.shape for t in call.tensors())))
            bounds = [[max(most, 2), *expected[0].shape[1:]]]
        places = [self.tensor(value, bound) for value, bound in zip(expected, bounds)]
        outs = outs_of(call.kernel)
        if str(call.kernel._schema.arguments[-1].type) == "List[Tensor]":
            one = self.add(schema.TensorList(places))
            return [one, one], places
        if len(outs) > 1:
            return [*places, self.add(schema.TensorList(places))], places
        return [*places, *places], places


def larger(shape):
    return [size + BOUND_EXCESS if size > 1 else size for size in shape]


class Call:
    """One kernel call: what to give it, and PyTorch's results."""

    def __init__(self, func, args, kwargs):
        self.func = functional(func, args)
        self.kernel = out_form(self.func) if self.func else None
        self.args, self.kwargs = args, kwargs

    def kernel_name(self):
        return f"{self.kernel._schema.name}.{self.kernel._schema.overload_name}"

    def named(self):
        """What the kernel's arguments are, in its order, by the names that both forms share."""
        names = [want.name for want in self.func._schema.arguments]
        given = {**dict(zip(names, self.args)), **self.kwargs}
        outs = outs_of(self.kernel)
        return [(str(want.type), given.get(want.name, want.default_value))
                for want in self.kernel._schema.arguments if want.name not in outs]

    def run(self, args=None):
        args, kwargs = pytree.tree_map(copied, (args or self.args, self.kwargs))
        return [v for v in pytree.tree_leaves(self.func(*args, **kwargs)) if v is not None]

    def bounds(self):
        """The results' sizes when every dim is as large as it may be."""
        def grow(value):
            if not isinstance(value, torch.Tensor):
                return value
            return torch.empty(larger(value.shape), dtype=value.dtype, device="meta")
        args, kwargs = pytree.tree_map(grow, (self.args, self.kwargs))
        return [list(v.shape) for v in pytree.tree_leaves(self.func(*args, **kwargs))]

    def tensors(self):
        return [v for v in pytree.tree_leaves((self.args, self.kwargs))
                if isinstance(v, torch.Tensor)]

    def types(self):
        return tuple(v.dtype for v in self.tensors())

    def key(self):
        return self.kernel_name() + str(pytree.tree_map(
            lambda v: (v.dtype, v.shape) if isinstance(v, torch.Tensor) else v,
            (self.args, self.kwargs)))

    def is_usable(self):
        tensors = [*self.tensors(), *self.run()]
        return (len(tensors) <= 64 and all(
            isinstance(t, torch.Tensor) and t.dtype in ops.DTYPES and t.layout is torch.strided
            and t.dim() <= 16 and t.numel() * t.element_size() <= BYTES_MAX for t in tensors)
            and all(torch.equal(a.nan_to_num(), b.nan_to_num())
                    for a, b in zip(self.run(), self.run())))


def make_plan(name, call, options):
    plan = Plan(name, options)
    places = [plan.argument(kind, value) for kind, value in call.named()]
    expected = call.run()
    outs, outputs = plan.result(call, expected)
    op = schema.Operator(call.kernel._schema.name, call.kernel._schema.overload_name)
    chain = schema.Chain([], [], [schema.Instruction(schema.KernelCall(0, [*places, *outs]))], None)
    made = schema.ExecutionPlan(name, schema.ContainerMetadata("", ""), plan.values, plan.inputs,
                                outputs, [chain], [op], [], [0, max(plan.end, ALIGNMENT)])
    return made, plan.tensors, expected


def program_of(plans):
    program = schema.Program(0, plans, [schema.Buffer(b"")], [], [],
                             schema.SubsegmentOffsets(0, []))
    return bytes(serialize_pte_binary(PTEFile(program=program)))


def verdict(module, name, tensors, expected, tolerance, options):
    def ordered(tensor):
        if options.channels_last and tensor.dim() == 4:
            return tensor.contiguous(memory_format=torch.channels_last)
        return tensor
    try:
        got = module.run_method(name, tuple(ordered(t) for t in tensors))
    except Exception:  # noqa: BLE001
        return "refuses"
    agree = len(got) == len(expected) and all(
        a.dtype == b.dtype and a.shape == b.shape
        and torch.allclose(a, b, tolerance, tolerance / 10, equal_nan=True)
        for a, b in zip(got, expected))
    return "agrees" if agree else "differs"


def verdicts(path, members, options):
    """ExecuTorch's runs, in processes of their own: some of its kernels abort."""
    said = {}
    while len(said) < len(members):
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            module = portable_lib._load_for_executorch(str(path))
            for name, (tensors, expected, tolerance) in members.items():
                if name not in said:
                    said[name] = verdict(module, name, tensors, expected, tolerance, options)
                    os.write(writer, f"{name} {said[name]}\n".encode())
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as lines:
            said.update(line.split() for line in lines)
        if os.waitpid(child, 0)[1] != 0 and len(said) < len(members):
            said[next(name for name in members if name not in said)] = "crashes"
    return said


def write_runs(path, runs, options):
    """What belongs to the program |path|: each method's tensors, results and tolerance."""
    blob, text = bytearray(), ""
    for name, (tensors, expected, tolerance) in runs.items():
        text += f"case {name} {tolerance:g} {tolerance / 10:g}\n"
        text += "".join(ops.describe("in", value, blob) for value in tensors)
        text += "".join(ops.describe("out", value, blob) for value in expected)
    path.with_suffix(".bin").write_bytes(blob)
    path.with_suffix(".cases").write_text(text)
    said = verdicts(path, runs, options)
    path.with_suffix(".verdicts").write_text("".join(f"{n} {v}\n" for n, v in said.items()))


def write_program(base, members, options):
    plans, runs = [], {}
    for name, call in members.items():
        plan, tensors, expected = make_plan(name, call, options)
        tolerance = max(options.tolerances.get(t.dtype, 1e-4) for t in [*tensors, *expected])
        plans.append(plan)
        runs[name] = tensors, expected, tolerance
    path = base.with_suffix(".pte")
    path.write_bytes(program_of(plans))
    write_runs(path, runs, options)


class Found:
    """The calls by kernel, a few for each combination of types."""

    def __init__(self, attempt, known, options):
        self.attempt, self.known, self.options = attempt, known, options
        self.calls, self.seen, self.counts = defaultdict(dict), set(), defaultdict(int)

    def add(self, func, args, kwargs, most):
        if isinstance(func, torch._ops.OpOverloadPacket):
            func = func.default
        call = self.attempt(Call, func, args, kwargs)
        if not call or not call.kernel or call.kernel_name() not in self.known:
            return
        name, kind = call.kernel_name(), (call.kernel_name(), call.types())
        if (not re.search(self.options.only, name) or self.counts[kind] >= most
                or call.key() in self.seen or not self.attempt(call.is_usable)
                or not self.attempt(make_plan, "x", call, self.options)):
            return
        self.seen.add(call.key())
        self.counts[kind] += 1
        types = "_".join(ops.DTYPES[t] for t in call.types()[:3]) or "none"
        self.calls[name][f"{types}_{len(self.calls[name])}"] = call


def record(found, infos, samples_of):
    for info in infos:
        for _, sample in samples_of(info, found.options):
            with Recorder() as recorder:
                found.attempt(lambda: info.op(sample.input, *sample.args, **sample.kwargs))
            for call in recorder.calls:
                found.add(*call, found.options.samples)
        print(f"{info.name}: {sum(map(len, found.calls.values()))} calls so far", flush=True)


def write_stored(found):
    """All in one program, and without ExecuTorch's opinion."""
    members = {f"{re.sub('[^a-zA-Z0-9_]+', '_', kernel)}_{name}": call
               for kernel, calls in sorted(found.calls.items()) for name, call in calls.items()}
    base = found.options.out / "tests" / "ops" / "corners"
    write_program(base, members, found.options)
    base.with_suffix(".verdicts").unlink()


def write(found):
    for kernel, calls in sorted(found.calls.items()):
        names = list(calls)
        for i in range(0, len(names), found.options.methods):
            stem = re.sub("[^a-zA-Z0-9_]+", "_", kernel)
            write_program(found.options.out / "tests" / "ops" / f"{stem}-{i}",
                          {n: calls[n] for n in names[i:i + found.options.methods]}, found.options)
