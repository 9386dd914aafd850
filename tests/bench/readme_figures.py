#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what `make bench` measured into the tables of docs/project/figures.md and README.md.

A table stands between markers, and all of it comes from one run. Figures that the run could not
measure (without wrk, cJSON or ExecuTorch) are not in the table. README.md has some of the rows.
Both say when, on what and of which commit.
The output of an incomplete run is refused, and the documents stay as they are.

usage: readme_figures.py FIGURES docs/project/figures.md README.md; FIGURES is what figures.sh says
"""
import datetime
import os
import re
import subprocess
import sys
from pathlib import Path

BEGIN, END = "<!-- figures -->\n", "<!-- end of figures -->\n"
COLUMNS = 100
DONE = "done: all"
JSON_CASE = "1x3x224x224 FP32, all digits"


class BadRun(Exception):
    """Why the figures cannot be used."""


def read_figures(text):
    """Returns {name: numbers}. Figures of bench_json have names such as json_decode."""
    if DONE not in text.splitlines():
        raise BadRun(f"the run broke off: expected a line {DONE!r}")
    figures = {}
    for name, rest in re.findall(r"^([a-z0-9_]+): (.*)$", text, re.MULTILINE):
        figures[name] = re.findall(r"\d+(?:\.\d+)?", rest)
    json_part = re.search(rf"^{re.escape(JSON_CASE)}\n((?: .*\n)*)", text, re.MULTILINE)
    for name, ms in re.findall(r"^  (\w+)[^\n]*? +([\d.]+) ms ", json_part[1] if json_part else "",
                               re.MULTILINE):
        figures[f"json_{name}"] = [ms]
    counts = re.findall(r"^allocations \S+: (\d+)$", text, re.MULTILINE)
    figures["allocations"] = [str(sum(map(int, counts)))] if counts else []
    return figures


def time_text(us):
    """The text for |us| microseconds, with at least two digits."""
    us = float(us)
    value, unit = (us / 1000, "ms") if us >= 1000 else (us, "µs")
    return f"{value:.1f} {unit}" if value < 100 else f"{value:.0f} {unit}"


def quotient(a, b):
    ratio = float(a) / float(b)
    return f"{ratio:.2f}" if ratio < 2 else f"{ratio:.1f}" if ratio < 20 else f"{ratio:.0f}"


def http_row(figures, ours, theirs, ratio, form):
    return [form(figures[ours][0]), form(figures[theirs][0]), figures[ratio][0]]


def json_row(figures, ours, theirs):
    a, b = float(figures[ours][0]), float(figures[theirs][0])
    return [time_text(a * 1000), time_text(b * 1000), quotient(b, a)]


def model_row(figures, name):
    ours, *beside = figures[name]
    if len(beside) < 2:
        return [time_text(ours), "", ""]
    return [time_text(ours), time_text(beside[0]), quotient(beside[1], 1)]


def one_row(figures, name, unit):
    return [f"{figures[name][0]} {unit}".strip(), "", ""]


def size_row(figures, name):
    return [f"{int(figures[name][0]) / 1e6:.1f} MB", "", ""]


# A row: its label, and the function that makes its three cells from the figures.
ROWS = [
    ("requests per second, model `add`, 32 kept connections", http_row, "add_requests_per_s",
     "bare_requests_per_s", "add_ratio", str),
    ("the same with binary tensors", http_row, "add_binary_requests_per_s", "bare_requests_per_s",
     "add_binary_ratio", str),
    ("processor time of a JSON request", http_row, "add_cpu_us", "bare_cpu_us", "add_cpu_ratio",
     time_text),
    ("1x3x224x224 JSON tensor to floats", json_row, "json_decode", "json_cJSON_Parse"),
    ("the same back to text", json_row, "json_print", "json_snprintf"),
    ("`digits`, a batch of 360, one thread", model_row, "digits_us"),
    ("`mobile`, one thread", model_row, "mobile_us"),
    ("`residual`, one thread", model_row, "residual_us"),
    ("`unet`, one thread", model_row, "unet_us"),
    ("start of `pted` to the first right answer of `digits`", one_row, "first_answer_ms", "ms"),
    ("resident memory after it", one_row, "resident_kb", "KiB"),
    ("stripped `pted`, its shaders included", size_row, "stripped_bytes"),
    ("allocations of warm calls, in runtime and HAL", one_row, "allocations", ""),
]

README_ROWS = ("`mobile`, one thread", "start of `pted` to the first right answer of `digits`",
               "resident memory after it", "stripped `pted`, its shaders included")


def processor():
    models = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{len(os.sched_getaffinity(0))} processors, {models[0] if models else 'of no name'}"


def commit():
    """Of this tree, a "+" behind it if files have changed; "unknown" without git."""
    script = Path(__file__).resolve().parents[2] / "contrib" / "commit.sh"
    done = subprocess.run([script, script.parents[1]], capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def wrap(text):
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + 1 + len(word) > COLUMNS:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return "\n".join(lines) + "\n"


def measured_rows(figures):
    rows = []
    for label, cells, *arguments in ROWS:
        try:
            rows.append([label, *cells(figures, *arguments)])
        except (KeyError, IndexError):
            continue  # not measured
    if not rows:
        raise BadRun("nothing was measured")
    return rows


def print_table(rows):
    return "".join(f"| {' | '.join(row)} |\n".replace("|  |", "| |").replace("|  |", "| |")
                   for row in [["figure", "pted", "beside it", "ratio"], ["---"] * 4, *rows])


def render(figures, machine, date):
    """The text between the markers of docs/project/figures.md."""
    table = print_table(measured_rows(figures))
    load = figures.get("load_at_start")
    busy = f", load average {load[0]} before it began" if load else ""
    return (wrap(f"`make bench` wrote this on {date}: {machine}{busy}, commit {commit()}. The two "
                 "programs of a "
                 "row took turns. The ratio is the median over the pairs of runs; it is above 1 if "
                 "pted does more or takes less.")
            + "\n" + table + "\n"
            + wrap("Beside pted ran: for requests, a bare libuv and llhttp server that gives every "
                   "request the same answer; for JSON, cJSON_Parse and snprintf; for models, "
                   "ExecuTorch's own runtime with its portable kernels, on the same file."))


def replace_table(path, table):
    head, begin, rest = path.read_text().partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise BadRun(f"{path}: expected the lines {BEGIN.strip()} and {END.strip()}")
    return head + begin + table + end + tail


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    page, readme = Path(sys.argv[2]), Path(sys.argv[3])
    try:
        figures = read_figures(Path(sys.argv[1]).read_text())
        today = datetime.date.today().isoformat()
        all_of_it = replace_table(page, render(figures, processor(), today))
        some = [row for row in measured_rows(figures) if row[0] in README_ROWS]
        when = wrap(f"`make bench` wrote this on {today}: {processor()}, commit {commit()}.")
        short = replace_table(readme, when + "\n" + print_table(some))
        page.write_text(all_of_it)
        readme.write_text(short)
    except BadRun as bad:
        sys.exit(f"readme_figures: {sys.argv[1]}: {bad}")


if __name__ == "__main__":
    main()
