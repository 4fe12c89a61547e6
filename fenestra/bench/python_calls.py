#!/usr/bin/python3
# Times a call of the Python module for the bench: a 3x3 convolution on 8x8 cells, called eagerly and
# compiled, in turns, on one thread. Prints the seconds of both as JSON; an empty object where the module
# is not there.
import json
import time

try:
    import fenestra as fn
    import numpy as np
except ImportError:
    print("{}")
    raise SystemExit

TURNS, CALLS = 15, 1000


def seconds_of(call):
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


fn.set_threads(1)
x, w = fn.tensor(np.ones((1, 1, 8, 8), "float32")), fn.tensor(np.ones((1, 1, 3, 3), "float32"))
calls = {"eager": lambda: fn.conv2d(x, w, padding=1)}
compiled = fn.compile(lambda x: fn.conv2d(x, w, padding=1), x)
calls["compiled"] = lambda: compiled(x)
times = {name: [] for name in calls}
for _ in range(TURNS):
    for name, call in calls.items():
        times[name].append(seconds_of(call))
print(json.dumps({name: {"median": sorted(all)[TURNS // 2], "least": min(all)} for name, all in times.items()}))
