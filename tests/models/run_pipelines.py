#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Calls pipelines of a real pted: they give what their steps give, and what PyTorch gave.

A file of pipelines (pted's --pipeline) has cases beside the steps. Each case runs four ways, as
those of run_models.py do, and once more as the steps one by one, with the results handed over by
this script: the same bytes have to come out. Where a case has outputs they are PyTorch's.

usage: run_pipelines.py [NAME...], with top_srcdir and top_builddir in the environment.
"""
import json
import sys

import run_models as models
from run_models import Daemon, Failure, Report, Tensor

FILES = [models.BUNDLED / "pipelines" / "pipelines.json"]
PROGRAMS = [models.BUNDLED]
if models.CORPUS:
    FILES.append(models.CORPUS / "pipelines.json")
    PROGRAMS.append(models.CORPUS)

WAYS = (("json", models.infer_json), ("binary", models.infer_binary), ("call", models.call_json),
        ("call binary", models.call_binary))


def find_programs(pipelines):
    """The programs that the steps name, but for pipelines."""
    names = {step["model"] for pipeline in pipelines.values() for step in pipeline["steps"]}
    for name in sorted(names - set(pipelines)):
        yield next(folder / f"{name}.pte" for folder in PROGRAMS
                   if (folder / f"{name}.pte").exists())


# ---- step by step -------------------------------------------------------------------------------

def infer_step(daemon, step, given):
    """The tensors that one step gives, through /infer with binary tensors both ways."""
    name = step["model"]
    if "method" in step and step["method"] != "forward":
        name += "." + step["method"]
    head = json.dumps({
        "inputs": [{"name": f"input_{index}", "datatype": models.TYPES[tensor.dtype][0],
                    "shape": tensor.shape, "parameters": {"binary_data_size": len(tensor.raw)}}
                   for index, tensor in enumerate(given)],
        "parameters": {"binary_data_output": True}}).encode()
    answer, content = daemon.request(
        "POST", f"/v2/models/{name}/infer", head + b"".join(tensor.raw for tensor in given),
        {"Inference-Header-Content-Length": str(len(head))})
    offset = int(answer.getheader("Inference-Header-Content-Length"))
    found = []
    for entry in json.loads(content[:offset])["outputs"]:
        end = offset + entry["parameters"]["binary_data_size"]
        dtype = next(d for d, names in models.TYPES.items() if names[0] == entry["datatype"])
        found.append(Tensor(dtype, entry["shape"], content[offset:end]))
        offset = end
    return found


def run_steps(daemon, pipeline, inputs):
    results = []
    for step in pipeline["steps"]:
        given = [inputs[source["input"]] if "input" in source
                 else results[source["from"]][source["output"]] for source in step["inputs"]]
        results.append(infer_step(daemon, step, given))
    if "outputs" not in pipeline:
        return results[-1]
    return [results[output["from"]][output["output"]] for output in pipeline["outputs"]]


def check_steps(daemon, name, pipeline, case, folder):
    inputs = [models.read_leaf(folder, leaf) for leaf in case["inputs"]]
    wanted = run_steps(daemon, pipeline, inputs)
    got = infer_step(daemon, {"model": name}, inputs)
    if [(t.dtype, t.shape, t.raw) for t in got] != [(t.dtype, t.shape, t.raw) for t in wanted]:
        raise Failure(f"{[(t.shape, t.values) for t in got]}, step by step it is "
                      f"{[(t.shape, t.values) for t in wanted]}")


# ---- what is said of a pipeline -----------------------------------------------------------------

def check_shapes(daemon, name, case, folder, got):
    """What /shape has foretold is what came out; only what depends on data is left open."""
    announced = models.infer_shapes(daemon, name, case, folder)
    for output, (datatype, shape) in announced.items():
        kind, dims, _ = got[output]
        if kind != datatype or any(a not in (-1, b) for a, b in zip(shape, dims, strict=True)):
            raise Failure(f"{output}: {kind} {dims}, announced as {datatype} {shape}")


def check_case(daemon, name, pipeline, case, folder, infer):
    got = infer(daemon, name, case, folder)
    if "outputs" in case:
        models.compare_all(got, case, folder, pipeline["tolerance"])
    check_shapes(daemon, name, case, folder, got)


def check_facts(daemon, name):
    """It is a model like any other to whoever asks."""
    meta = json.loads(daemon.request("GET", f"/v2/models/{name}")[1])
    if (meta["name"], meta["platform"], meta["versions"]) != (name, "pipeline", ["1"]):
        raise Failure(f"metadata {meta}")
    daemon.request("GET", f"/v2/models/{name}/ready")
    models.check_example(daemon, name)
    stats = json.loads(daemon.request("GET", f"/v2/models/{name}/stats")[1])
    if stats["model_stats"][0]["inference_count"] == 0:
        raise Failure(f"statistics {stats}")
    index = json.loads(daemon.request("POST", "/v2/repository/index")[1])
    if not any((row["name"], row["state"]) == (name, "READY") for row in index):
        raise Failure(f"index {index}")


def read_names(daemon, name):
    """Those of its metadata; tests/http/run_pipelines.py knows what they must be."""
    meta = json.loads(daemon.request("GET", f"/v2/models/{name}")[1])
    return {"input_names": [entry["name"] for entry in meta["inputs"]],
            "output_names": [entry["name"] for entry in meta["outputs"]]}


def check_pipeline(report, daemon, name, pipeline, folder):
    names = read_names(daemon, name)
    for number, case in enumerate(pipeline["cases"]):
        case.update(names)
        for way, infer in WAYS:
            report.run(f"{name} case {number} {way}", check_case, daemon, name, pipeline, case,
                       folder, infer)
        report.run(f"{name} case {number} step by step", check_steps, daemon, name, pipeline, case,
                   folder)
    report.run(f"{name} described", check_facts, daemon, name)


def check_file(report, path, names):
    pipelines = json.loads(path.read_text())
    with Daemon("--pipeline", path, *find_programs(pipelines)) as daemon:
        for name, pipeline in pipelines.items():
            if not names or name in names:
                check_pipeline(report, daemon, name, pipeline, path.parent)


def main(names):
    report = Report()
    if not models.CORPUS:
        print("# skipped: the collection shared/models/public is not here")
    for path in FILES:
        report.run(f"{path.parent.name}/{path.name}", check_file, report, path, names)
    print(f"1..{report.count}\n# {report.failed} of {report.count} failed")
    return report.failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
