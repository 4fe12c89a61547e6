#!/usr/bin/python3
# make parity: every operator against torch; values, VJP, JVP and double backward, in f64 and f32.
#
#   parity.py PARITY_CASES                                all operators
#   parity.py PARITY_CASES --operator conv --seed 7 --count 1
#   parity.py PARITY_CASES --operator conv --seed 7 --problem "x=1x1x3 w=1x1x2"
#
# PARITY_CASES is the program of main.cpp; it draws the problems and computes ours. Two correct
# results differ by no more than the rounding errors of both, each at most gamma(n) * magnitude with
# the roundings n and the magnitude that rounded.hpp carries through the same expression. Exits with
# 1 and a line that reproduces it when an element differs by more.
import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import torch

from torch_operators import OPERATORS, Problem

UNIT = {torch.float64: 2.0**-53, torch.float32: 2.0**-24}
LABEL = {torch.float64: "f64", torch.float32: "f32"}


def read_records(stream):
    for line in iter(stream.readline, b""):
        header = json.loads(line)
        arrays = {}
        for name, kind, shape in header["arrays"]:
            count = int(np.prod(shape, dtype=np.int64))
            content = stream.read(8 * count)
            if len(content) < 8 * count:
                return  # the program ended early; its exit code says so
            arrays.setdefault(name, []).append(np.frombuffer(content, dtype=kind).reshape(shape))
        header["arrays"] = arrays
        yield header


def gradients(outputs, inputs, seeds, create=False):
    """Of sum <output, seed>, with zeros where an input does not matter."""
    pairs = [(y, seed) for y, seed in zip(outputs, seeds) if y.requires_grad]
    if not pairs:
        return [torch.zeros_like(x) for x in inputs]
    found = torch.autograd.grad([y for y, _ in pairs], inputs, [s for _, s in pairs],
                                create_graph=create, allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]


def torch_results(record, dtype):
    arrays = record["arrays"]
    tensor = lambda a: torch.tensor(np.array(a), dtype=dtype)
    inputs = [tensor(a).requires_grad_() for a in arrays.get("x", [])]
    data = [torch.tensor(np.array(a)) for a in arrays.get("data", [])]
    dots = [tensor(a) for a in arrays.get("x_dot", [])]
    weights = [tensor(a) for a in arrays.get("v", [])]
    y_bar = tensor(arrays["y_bar"][0]).requires_grad_()
    y = OPERATORS[record["op"]](Problem(record["problem"]), inputs, data)
    bars = gradients([y], inputs, [y_bar], create=True)
    # The VJP is linear in y_bar; its transpose is the JVP.
    y_dot, = gradients(bars, [y_bar], dots, create=True)
    second = gradients(bars, inputs + [y_bar], weights)
    return [y] + bars + [y_dot] + second


def names(count):
    """Of the quantities in a record with this many inputs."""
    return (["y"] + [f"x_bar[{i}]" for i in range(count)] + ["y_dot"]
            + [f"double backward by x[{i}]" for i in range(count)] + ["double backward by y_bar"])


def compare(record, dtype):
    """The largest difference as a share of its bound, and a complaint where that is above 1."""
    arrays = record["arrays"]
    worst, complaint = 0.0, None
    theirs = torch_results(record, dtype)
    for i, what in enumerate(names(len(arrays.get("x", [])))):
        ours, needed = arrays[LABEL[dtype]][i], theirs[i].detach().double().numpy()
        if ours.shape != needed.shape:
            return float("inf"), f"{what}: shape {ours.shape}, torch {needed.shape}"
        steps = arrays["roundings"][i] * UNIT[dtype]
        bound = 2 * steps / (1 - steps) * arrays["magnitude"][i]
        with np.errstate(invalid="ignore", divide="ignore"):
            difference = np.abs(ours - needed)
            ratio = np.where(difference == 0, 0.0, difference / bound)
        ratio = np.where(np.isnan(ratio), float("inf"), ratio)
        if ratio.size and ratio.max() > worst:
            worst, at = float(ratio.max()), int(ratio.argmax())
            if worst > 1:
                complaint = (f"{LABEL[dtype]} {what}[{at}]: {ours.flat[at]!r}, "
                             f"torch {needed.flat[at]!r}, difference {difference.flat[at]:.3g}, "
                             f"bound {bound.flat[at]:.3g}")
    return worst, complaint


def run_operator(program, operator, seed, last):
    torch.set_num_threads(1)
    started = time.monotonic()
    result = {"operator": operator, "problems": 0, "failures": [],
              "worst": {"f64": 0.0, "f32": 0.0}}
    # One thread: these problems are far too small for two, and two operators run at once.
    environment = dict(os.environ, FENESTRA_THREADS="1")
    with subprocess.Popen([program, operator, str(seed), str(last)], stdout=subprocess.PIPE,
                          env=environment) as process:
        for record in read_records(process.stdout):
            result["problems"] += 1
            for dtype in (torch.float64, torch.float32):
                try:
                    worst, complaint = compare(record, dtype)
                except Exception as error:  # torch refuses what we accept
                    worst, complaint = float("inf"), f"{LABEL[dtype]} torch: {error}"
                label = LABEL[dtype]
                result["worst"][label] = max(result["worst"][label], worst)
                if complaint:
                    result["failures"].append((record["seed"], record["problem"], complaint))
    if process.returncode != 0:
        at = seed + result["problems"]
        result["failures"].append((at, "", f"parity_cases ended with {process.returncode}"))
    result["seconds"] = time.monotonic() - started
    return result


def main():
    parser = argparse.ArgumentParser(description="Compares every operator with torch.")
    parser.add_argument("program", help="the built parity_cases")
    parser.add_argument("--operator", help="only this one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=400, help="problems per operator")
    parser.add_argument("--problem", help="this problem instead of drawn ones")
    arguments = parser.parse_args()

    listed = subprocess.run([arguments.program, "--list"], check=True, capture_output=True,
                            text=True)
    operators = [arguments.operator] if arguments.operator else listed.stdout.split()
    unknown = [name for name in operators if name not in OPERATORS]
    if unknown:
        print(f"parity: torch_operators.py does not have {', '.join(unknown)}", file=sys.stderr)
        return 1

    last = arguments.problem or arguments.count
    total, failed = 0, False
    print(f"{'operator':<20}{'problems':>9}{'f64':>9}{'f32':>9}{'s':>7}"
          "   (worst difference / bound)")
    with ProcessPoolExecutor(max_workers=os.cpu_count()) as pool:
        jobs = [pool.submit(run_operator, arguments.program, name, arguments.seed, last)
                for name in operators]
        for job in jobs:
            result = job.result()
            total += result["problems"]
            worst = result["worst"]
            print(f"{result['operator']:<20}{result['problems']:>9}{worst['f64']:>9.3f}"
                  f"{worst['f32']:>9.3f}{result['seconds']:>7.1f}", flush=True)
            for seed, problem, complaint in result["failures"][:5]:
                failed = True
                print(f"  {result['operator']} \"{problem}\": {complaint}\n"
                      f"    again: parity.py PARITY_CASES --operator {result['operator']} "
                      f"--seed {seed} --count 1")
            if len(result["failures"]) > 5:
                print(f"  and {len(result['failures']) - 5} more")
    verdict = "FAILED" if failed else "agree with torch " + torch.__version__
    print(f"{total} problems, each in f64 and f32: {verdict}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
