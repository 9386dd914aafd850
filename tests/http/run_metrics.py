#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GET /metrics against a real daemon: its form, its counts, and how little clients can do to it.

Prometheus' own parser and promtool look at the page if they are installed. PROMTOOL names another
promtool.

usage: run_metrics.py, with top_srcdir and top_builddir in the environment.
"""
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from run_daemon import ADD, DIGITS, add_body, digits_body, infer
from run_http import (MODELS, PTED, SOURCE, Client, Daemon, Failure, Report, build_request,
                      expect)
from run_pipelines import FAULTS, Pipelines

try:
    from prometheus_client import openmetrics, parser
    import prometheus_client.openmetrics.parser
except ImportError:
    parser = None
OPEN = "Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;q=0.3"
PROMTOOL = os.environ.get("PROMTOOL") or shutil.which("promtool")
ROWS = re.findall(r'^(?:SERVER|MODEL)_METRIC\(\w+, (\w+), "(\w+)"',
                  (SOURCE / "server/daemon/observe/metrics.def").read_text(), re.MULTILINE)
SHARES = re.findall(r'^RESOURCE\(\w+, (\w+), (\w+), \d+, "[^"]*", "(\w+)"',
                    (SOURCE / "base" / "resource.def").read_text(), re.MULTILINE)
LINE = re.compile(r'(\w+)(?:\{((?:\w+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\d+(?:\.\d+)?)')


def scrape(client, *fields):
    client.send(build_request("GET", "/metrics", fields=fields))
    expect("status", client.answer(), 200)
    return client.body.decode()


def read(text):
    """The series: {(name, labels): number}, with the labels as they stand on the page."""
    series = {}
    for line in text.splitlines():
        if not line.startswith("# "):
            found = LINE.fullmatch(line)
            if not found or (found[1], found[2]) in series:
                raise Failure(f"line {line!r}")
            series[found[1], found[2] or ""] = float(found[3])
    return series


def pick(series, name, *parts):
    """The sum of the series of that name whose labels have all parts."""
    return sum(value for (key, labels), value in series.items()
               if key == name and all(part in labels for part in parts))


def check_histograms(series):
    """Buckets are cumulative, and the last one is the count."""
    rows = {}
    for (name, labels), value in series.items():
        if name.endswith("_bucket"):
            bound = float(re.search(r'le="([^"]*)"', labels)[1])
            key = name[:-7], re.sub(r',?le="[^"]*"', "", labels)
            rows.setdefault(key, []).append((bound, value))
    for (name, labels), buckets in rows.items():
        expect(f"{name}: order", buckets, sorted(buckets))
        expect(f"{name}: growth", [value for _, value in buckets],
               sorted(value for _, value in buckets))
        expect(f"{name}: last bound", buckets[-1][0], float("inf"))
        expect(f"{name}: count", series[name + "_count", labels], buckets[-1][1])
        if series[name + "_sum", labels] > 0 and buckets[-1][1] == 0:
            raise Failure(f"{name}{{{labels}}}: sum {series[name + '_sum', labels]}")
    return len(rows)


def form():
    """Both formats have every row of the table, once, and the same series."""
    with Pipelines({"pair": {"steps": [
            {"name": "first", "model": "add", "inputs": [{"input": 0}, {"input": 1}]}]}},
            ADD, DIGITS, "--max-batch=1") as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        expect("infer", infer(client), 200)
        expect("infer", infer(client, "digits", digits_body(5)), 200)
        text = scrape(client)
        expect("media type", client.field("content-type"),
               "text/plain; version=0.0.4; charset=utf-8")
        other = scrape(client, OPEN)
        expect("media type", client.field("content-type"),
               "application/openmetrics-text; version=1.0.0; charset=utf-8")
        types = [(name, kind) for name, kind in re.findall(r"# TYPE (\w+) (\w+)", text)]
        expect("rows", types, [(name, {"INFO": "gauge"}.get(kind, kind.lower()))
                               for kind, name in ROWS])
        expect("end", other.endswith("\n# EOF\n"), True)
        version = subprocess.run([PTED, "--version"], capture_output=True, check=True,
                                 text=True).stdout
        commit = re.search("^commit: (.*)$", version, re.MULTILINE)
        expect("commit", re.findall(r'^pted_build_info\{.*commit="(.*?)"', text, re.MULTILINE),
               [commit[1]] if commit else [])
        if not set(read(text)) <= set(read(other)):  # the second has counted the first
            raise Failure(f"{set(read(text)) - set(read(other))}")
        for page in (text, other):
            if check_histograms(read(page)) < 6:
                raise Failure(f"histograms are missing in {page}")
        expect("step", pick(read(text), "pted_pipeline_step_duration_seconds_count",
                            'step="first"'), 0)
        client.send(build_request("HEAD", "/metrics"))
        expect("HEAD", client.answer(is_head=True), 200)
        client.send(build_request("POST", "/metrics", b""))
        expect("POST", client.answer(), 405)


def parsers():
    """Prometheus' parser reads both formats, and promtool finds nothing to complain about."""
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        expect("infer", infer(client), 200)
        text, other = scrape(client), scrape(client, OPEN)
    if parser:
        for read_all, page in ((parser.text_string_to_metric_families, text),
                               (openmetrics.parser.text_string_to_metric_families, other)):
            names = [family.name for family in read_all(page)]
            if len(names) != len(ROWS):
                raise Failure(f"{names}")
    else:
        print("# skipped: prometheus_client is not installed")
    if PROMTOOL:
        done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True,
                              text=True, check=False)
        expect("promtool check metrics", (done.returncode, done.stdout + done.stderr), (0, ""))
    else:
        print("# skipped: promtool is not installed")


def monitoring():
    """Alerts and dashboard name only metrics that exist; promtool reads the alerts."""
    folder = SOURCE / "contrib" / "monitoring"
    endings = {"HISTOGRAM": ("_bucket", "_sum", "_count"), "SUMMARY": ("_sum", "_count")}
    known = {name + ending for kind, name in ROWS for ending in endings.get(kind, ("",))}
    for path in ("alerts.yml", "grafana.json"):
        named = set(re.findall(r"\b(?:pted|process)_\w+", (folder / path).read_text()))
        expect(f"{path}: unknown", named - known, set())
        expect(f"{path}: some", len(named) > 5, True)
    json.loads((folder / "grafana.json").read_text())
    if PROMTOOL:
        done = subprocess.run([PROMTOOL, "check", "rules", str(folder / "alerts.yml")],
                              capture_output=True, text=True, check=False)
        expect("promtool check rules", (done.returncode, done.stderr), (0, ""))
    else:
        print("# skipped: promtool is not installed")


def resources():
    """Each resource of the table has its series, and no other has any."""
    with Daemon([ADD, "--admin-listen", "127.0.0.1:0", "--health-listen", "127.0.0.1:0"]) as daemon:
        client = Client(daemon.port)
        expect("infer", infer(client), 200)
        series = read(scrape(client))
    shown = {name: party for name, party, metric in SHARES if metric == "pted_share_used"}
    for name in ("pted_share_size", "pted_share_used", "pted_share_most_held",
                 "pted_share_holders", "pted_share_refused_total", "pted_share_taken_back_total"):
        labels = {re.fullmatch('resource="(.*)"', label)[1] for key, label in series if key == name}
        expect(f"{name}: unknown", labels - set(shown), set())
        if name in ("pted_share_size", "pted_share_used"):
            expect(f"{name}: missing", set(shown) - labels, set())
        by_party = {resource for resource, party in shown.items() if party != "ALL"}
        if name in ("pted_share_most_held", "pted_share_holders"):
            expect(f"{name}: by party", labels, by_party)
    for name in shown:
        label = f'resource="{name}"'
        expect(name, pick(series, "pted_share_used", label) <=
               pick(series, "pted_share_size", label), True)
    expect("own connection", pick(series, "pted_share_most_held", 'resource="connections"'), 1)


def counts_add_up():
    """Requests, statuses, bytes and rows are those that the clients have seen."""
    with Daemon([ADD, DIGITS, "--max-batch=1"]) as daemon:
        client, probe = Client(daemon.port), Client(daemon.port)
        before = read(scrape(probe))
        sent = received = 0
        wanted = {}
        for i in range(60):
            model, body, status = (("add", add_body(), 200), ("digits", digits_body(3), 200),
                                   ("add", b"{}", 400))[i % 3]
            request = build_request("POST", f"/v2/models/{model}/infer", body)
            client.send(request)
            expect(model, client.answer(), status)
            sent += len(request)
            received += len(client.body)
            wanted[model, status] = wanted.get((model, status), 0) + 1
        after = read(scrape(probe))
        for (model, status), count in wanted.items():
            expect(f"{model} {status}",
                   pick(after, "pted_model_requests_total", f'model="{model}"',
                        f'code="{status}"'), count)
        expect("by route", pick(after, "pted_requests_total", "/infer", 'code="200"'), 40)
        expect("by route", pick(after, "pted_requests_total", "/infer", 'code="400"'), 20)
        scraped = len(build_request("GET", "/metrics"))
        expect("bytes in", pick(after, "pted_received_bytes_total") -
               pick(before, "pted_received_bytes_total"), sent + scraped)
        if pick(after, "pted_sent_bytes_total") <= received:
            raise Failure(f"{pick(after, 'pted_sent_bytes_total')} bytes out, {received} of bodies")
        expect("rows", pick(after, "pted_model_batch_rows_sum", 'model="digits"'), 60)
        expect("executions", pick(after, "pted_model_batch_rows_count", 'model="digits"'), 20)
        expect("of 4 rows or fewer",
               pick(after, "pted_model_batch_rows_bucket", 'model="digits"', 'le="4.0"'), 20)
        expect("of 2 rows or fewer",
               pick(after, "pted_model_batch_rows_bucket", 'model="digits"', 'le="2.0"'), 0)
        for phase in ("prepare", "queue", "compute", "encode"):
            expect(phase, pick(after, "pted_model_phase_duration_seconds_count",
                               'model="add"', f'phase="{phase}"'), 20)
        expect("no files", [row for row in after if 'phase="decode"' in str(row)], [])
        phases = pick(after, "pted_model_phase_duration_seconds_sum", 'model="add"')
        whole = pick(after, "pted_model_request_duration_seconds_sum", 'model="add"')
        expect("phases are part of the whole", 0 < phases <= whole, True)
        hits = pick(after, "pted_model_plan_lookups_total", 'model="add"', 'result="hit"')
        expect("plans that were found", hits >= 20, True)
        expect("connections", pick(after, "pted_connections"), 2)
        expect("accepted", pick(after, "pted_connections_accepted_total"), 2)
        check_histograms(after)


def lists_and_pipelines():
    """Each call of a list counts for its model with its status; steps have their times."""
    faulty = {"pair": {"steps": [
        {"name": "divide", "model": "faults.divide", "inputs": [{"input": 0}, {"input": 1}]}]}}
    with Pipelines(faulty, FAULTS, ADD) as arguments, Daemon(arguments) as daemon:
        client = Client(daemon.port)
        for divisor, status in ((1, 200), (2, 200), (0, 400)):
            body = json.dumps({"args": [[8, 8, 8, 8], [divisor] * 4]}).encode()
            client.send(build_request("POST", "/v2/models/pair/call", body))
            expect(f"by {divisor}", client.answer(), status)
        calls = [{"model_name": "add", "args": [[[1] * 3] * 2] * 2},
                 {"model_name": "faults.divide", "args": [[1] * 4, [0] * 4]}]
        client.send(build_request("POST", "/v2/batch", json.dumps(calls).encode()))
        expect("list", client.answer(), 200)
        series = read(scrape(client))
        name = "pted_pipeline_step_duration_seconds"
        expect("steps", pick(series, name + "_count", 'model="pair"', 'step="divide"'), 2)
        expect("their time", pick(series, name + "_sum", 'step="divide"') > 0, True)
        expect("failures", pick(series, "pted_pipeline_step_failures_total", 'step="divide"'), 1)
        expect("add", pick(series, "pted_model_requests_total", 'model="add"', 'code="200"'), 1)
        expect("divide", pick(series, "pted_model_requests_total", 'model="faults.divide"',
                              'code="400"'), 1)
        expect("lists", pick(series, "pted_requests_total", 'route="/v2/batch"', '"200"'), 1)


def hostile_clients():
    """Paths, names, versions and methods that clients make up make no series."""
    with Daemon([ADD]) as daemon:
        client = Client(daemon.port)
        expect("infer", infer(client), 200)
        for path in ("/nope", "/v2/models/nope", "/v2/models/nope/infer"):
            client.send(build_request("GET", path))
            client.answer()
        scrape(client)  # its own route counts from now on
        before = read(scrape(client))
        for i in range(200):
            for method, path in (("GET", f"/{i}"), ("GET", f"/v2/models/m{i}"),
                                 ("GET", f"/v2/models/add/versions/{i + 2}"),
                                 ("GET", f"/v2/models/%22%7d%0apted_{i}%20"),
                                 (f"M{i}", "/v2"), ("GET", f'/"}}\\{i}')):
                one = Client(daemon.port) if method != "GET" else client
                one.send(build_request(method, path))
                one.answer()
        after = read(scrape(client))
        expect("new series", {name for name, labels in set(after) - set(before)} -
               {"pted_requests_total"}, set())
        if len(after) > len(before) + 4:  # statuses of routes that had not occurred
            raise Failure(f"{set(after) - set(before)}")
        expect("unknown paths and methods",
               pick(after, "pted_requests_total", 'route="none"') > 200, True)


def many_models():
    """500 models: the page is whole, and while it is printed other requests are answered."""
    with tempfile.TemporaryDirectory() as folder:
        for i in range(500):
            (Path(folder) / f"m{i:03}.pte").symlink_to(ADD)
        with Daemon(["--models", folder]) as daemon:
            client, other = Client(daemon.port), Client(daemon.port)
            for i in range(500):
                expect("infer", infer(client, f"m{i:03}"), 200)
            text = scrape(client)
            series = read(text)
            expect("calls", pick(series, "pted_model_requests_total", 'code="200"'), 500)
            expect("models", pick(series, "pted_models", "ready"), 500)
            check_histograms(series)
            for _ in range(5):
                client.send(build_request("GET", "/metrics"))
                expect("infer", infer(other, "m001"), 200)
                expect("metrics", client.answer(), 200)
            client.send(build_request("GET", "/metrics", fields=["Accept-Encoding: gzip"]))
            expect("compressed", client.answer(), 200)
            expect("coding", client.field("content-encoding"), "gzip")
            plain = gzip.decompress(client.body).decode()
            expect("the same series", set(series) <= set(read(plain)), True)
            expect("shorter", len(client.body) < len(text) / 5, True)
            for _ in range(20):  # clients that leave while it is printed
                gone = Client(daemon.port)
                gone.send(build_request("GET", "/metrics"))
                gone.reset()
            expect("infer", infer(other, "m002"), 200)


def longer_than_an_answer():
    """A page that is longer than an answer may be is refused, and the daemon goes on."""
    with Daemon([ADD, "--answer-bytes-max=64K", *(item for i in range(30) for item in
                                                  ("--model", f"m{i}={ADD}"))]) as daemon:
        client = Client(daemon.port)
        for i in range(30):
            expect("infer", infer(client, f"m{i}"), 200)
        client.send(build_request("GET", "/metrics", fields=[OPEN]))
        expect("status", client.answer(), 413)
        expect("media type", client.field("content-type"), "application/json")
        expect("infer", infer(client), 200)


CHECKS = (form, parsers, monitoring, resources, counts_add_up, lists_and_pipelines, hostile_clients,
          many_models, longer_than_an_answer)


def main():
    report = Report()
    report.run_all(CHECKS)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
