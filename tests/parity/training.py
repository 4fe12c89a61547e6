#!/usr/bin/python3
# Optimisers, schedules and losses against torch in f64.
#
#   training.py TRAINING_CASES
#
# TRAINING_CASES is the program of training_cases.cpp. Over 50 steps of contracting maps both sides
# round each number some dozens of times; they may differ by 1e-12 of the largest number. Exits with
# 1 and the first difference.
import json
import math
import subprocess
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def options_of(text):
    name, *words = text.split()
    return name, {key: float(value) for key, value in (word.split("=") for word in words)}


def torch_optimiser(text):
    name, options = options_of(text)
    names = {"rate": "lr", "weight_decay": "weight_decay", "momentum": "momentum",
             "nesterov": "nesterov", "epsilon": "eps", "smoothing": "alpha", "centred": "centered"}
    given = {names[key]: value for key, value in options.items() if key in names}
    for flag in ("nesterov", "centered"):
        if flag in given:
            given[flag] = bool(given[flag])
    if name in ("adam", "adamw"):
        given["betas"] = (options.get("beta1", 0.9), options.get("beta2", 0.999))
    kind = {"sgd": torch.optim.SGD, "adam": torch.optim.Adam, "adamw": torch.optim.AdamW,
            "rmsprop": torch.optim.RMSprop}[name]
    w = torch.tensor([1.0, -2.0, 0.5, 3.0, -0.25], requires_grad=True)
    optimiser = kind([w], **given)
    numbers = []
    for t in range(50):
        w.grad = torch.tensor([w[i].item() * (i + 1) / 3 - math.cos(t * (i + 1))
                               for i in range(5)])
        optimiser.step()
        numbers += w.tolist()
    return numbers


def torch_schedule(text):
    name, options = options_of(text)
    optimiser = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    schedules = torch.optim.lr_scheduler
    if name == "constant":
        schedule = schedules.LambdaLR(optimiser, lambda step: 1.0)
    elif name == "step":
        schedule = schedules.StepLR(optimiser, int(options["every"]), options["factor"])
    elif name == "cosine":
        schedule = schedules.CosineAnnealingLR(optimiser, int(options["steps"]),
                                               options.get("least", 0.0))
    elif name == "linear":
        schedule = schedules.LinearLR(optimiser, 1.0, options["least"], int(options["steps"]))
    else:
        schedule = schedules.OneCycleLR(
            optimiser, 1.0, int(options["steps"]), pct_start=options.get("rise", 0.3),
            div_factor=options.get("divisor", 25.0), cycle_momentum=False,
            final_div_factor=options.get("final_divisor", 1e4))
    numbers = []
    for step in range(50):
        numbers.append(optimiser.param_groups[0]["lr"])
        optimiser.step()
        if step < 49:
            schedule.step()
    return numbers


def torch_loss(text):
    name, options = options_of(text)
    x = torch.tensor([3 * math.sin(1.0 + i * i) for i in range(24)]).reshape(3, 4, 2)
    x.requires_grad_()
    target = torch.tensor([1.0 if i % 3 == 0 else 0.0 for i in range(24)]).reshape(3, 4, 2)
    labels = torch.tensor([[0, 3], [2, 1], [1, 0]])
    loss = {
        "cross-entropy": lambda: F.cross_entropy(x, labels,
                                                 label_smoothing=options.get("smoothing", 0.0)),
        "bce": lambda: F.binary_cross_entropy_with_logits(x, target),
        "mse": lambda: F.mse_loss(x, target),
        "l1": lambda: F.l1_loss(x, target),
        "huber": lambda: F.huber_loss(x, target, delta=options["delta"]),
    }[name]()
    loss.backward()
    return [loss.item()] + x.grad.flatten().tolist()


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: training.py TRAINING_CASES")
    lines = subprocess.run([sys.argv[1]], check=True, capture_output=True, text=True).stdout
    judges = {"optimiser": torch_optimiser, "schedule": torch_schedule, "loss": torch_loss}
    worst = 0.0
    count = 0
    for line in lines.splitlines():
        case = json.loads(line)
        expected = judges[case["kind"]](case["text"])
        ours = case["numbers"]
        if len(ours) != len(expected):
            sys.exit(f"{case['text']}: {len(ours)} numbers, torch has {len(expected)}")
        scale = max(map(abs, expected))
        for i, (a, b) in enumerate(zip(ours, expected)):
            worst = max(worst, abs(a - b) / scale)
            if not abs(a - b) <= 1e-12 * scale:
                print(f"{case['kind']} \"{case['text']}\", number {i}: ours {a!r}, torch {b!r}")
                sys.exit(1)
        count += 1
    print(f"training: {count} optimisers, schedules and losses agree with torch; "
          f"they differ by {worst:.1e} at most")


if __name__ == "__main__":
    main()
