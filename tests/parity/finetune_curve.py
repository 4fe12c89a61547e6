#!/usr/bin/env python3
"""Prints the losses of 20 steps by torch that fenestra/io/onnx/finetune_test.cpp compares with.

Float64; weights, inputs and labels are formulas, so that both sides have them without a file.
"""

import math

import torch


def wave(shape, phase, scale):
    count = math.prod(shape)
    return torch.tensor([scale * math.sin(0.7 * i + phase) for i in range(count)],
                        dtype=torch.float64).reshape(shape)


def curve(make_optimiser):
    net = torch.nn.Sequential(
        torch.nn.Conv2d(1, 3, 3, padding=1), torch.nn.BatchNorm2d(3), torch.nn.ReLU(),
        torch.nn.MaxPool2d(2), torch.nn.Flatten(), torch.nn.Linear(48, 3)).double()
    with torch.no_grad():
        net[0].weight.copy_(wave((3, 1, 3, 3), 0.1, 0.5))
        net[0].bias.copy_(wave((3,), 0.2, 0.1))
        net[1].weight.copy_(1 + wave((3,), 0.3, 0.2))
        net[1].bias.copy_(wave((3,), 0.4, 0.1))
        net[5].weight.copy_(wave((3, 48), 0.5, 0.2))
        net[5].bias.copy_(wave((3,), 0.6, 0.1))
    x, labels = wave((6, 1, 8, 8), 0.7, 1.0), torch.tensor([0, 1, 2, 2, 1, 0])
    net.train()
    optimiser = make_optimiser(net.parameters())
    losses = []
    for _ in range(20):
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(x), labels)
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        losses.append(torch.nn.functional.cross_entropy(net(x), labels).item())
    return losses


for name, make in {
        "sgd rate=0.05 momentum=0.9": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9),
        "adam rate=0.01": lambda p: torch.optim.Adam(p, lr=0.01)}.items():
    print(name)
    for value in curve(make):
        print(f"    {value!r},")
