#!/usr/bin/python3
# Times torch's eager operators for the bench: one request per line on stdin, one answer on stdout,
# both JSON. A request names operator, problem, direction, type, threads and effort; the answer has
# the seconds of each run, or nothing where torch has no such operator. Without an effort the answer
# has the bytes of memory that a call takes.
import ctypes
import gc
import json
import sys
import time

import torch
import torch.nn.functional as F

aten = torch.ops.aten


def fields_of(problem):
    return dict(field.split("=", 1) for field in problem.split())


def shape_of(text):
    return [int(n) for n in text.split("x")]


def per_axis(fields, key, rank, otherwise):
    values = [int(n) for n in fields[key].split(",")] if key in fields else [otherwise]
    return values * rank if len(values) == 1 else values


def random(shape, dtype):
    return torch.rand(shape, dtype=dtype) * 2 - 1


def in_layout(tensor, fields):
    """A tensor with channels second, in memory as the problem says."""
    if fields.get("layout") != "channels_last":
        return tensor.contiguous()
    return tensor.movedim(1, -1).contiguous().movedim(-1, 1)


def activation(fields, dtype):
    x = random(shape_of(fields["x"]), dtype)
    return x.movedim(-1, 1) if fields.get("layout") == "channels_last" else x


def weight(fields, dtype):
    w = random(shape_of(fields["w"]), dtype)
    if fields.get("layout") == "channels_last":  # ours: taps, in, out
        w = w.movedim(-1, 0).movedim(-1, 1)
    return in_layout(w, fields)


def conv_call(fields, direction, dtype, transposed):
    x, w = activation(fields, dtype), weight(fields, dtype)
    rank = w.dim() - 2
    if rank > 3:
        return None
    stride, padding = per_axis(fields, "stride", rank, 1), per_axis(fields, "padding", rank, 0)
    dilation, groups = per_axis(fields, "dilation", rank, 1), int(fields.get("groups", 1))
    extra = per_axis(fields, "output_padding", rank, 0)
    if transposed:
        native = [F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d][rank - 1]
        forward = lambda x, w: native(x, w, None, stride, padding, extra, groups, dilation)
    else:
        native = [F.conv1d, F.conv2d, F.conv3d][rank - 1]
        forward = lambda x, w: native(x, w, None, stride, padding, dilation, groups)
    if direction in "FP":
        return lambda: forward(x, w)
    if direction == "T":
        w.requires_grad_()
        return lambda: forward(x, w)
    y_bar = in_layout(random(forward(x, w).shape, dtype), fields)
    mask = [direction == "D", direction == "W", False]
    return lambda: aten.convolution_backward(
        y_bar, x, w, None, stride, padding, dilation, transposed, extra, groups, mask)


def pool_arguments(fields, dtype):
    x = activation(fields, dtype)
    rank = x.dim() - 2
    kernel = per_axis(fields, "kernel", rank, 1)
    stride = per_axis(fields, "stride", rank, 0) if "stride" in fields else kernel
    return x, rank, kernel, stride, per_axis(fields, "padding", rank, 0)


def max_pool_call(fields, direction, dtype):
    x, rank, kernel, stride, padding = pool_arguments(fields, dtype)
    native = {2: aten.max_pool2d_with_indices, 3: aten.max_pool3d_with_indices}.get(rank)
    backward = {2: aten.max_pool2d_with_indices_backward,
                3: aten.max_pool3d_with_indices_backward}.get(rank)
    if native is None:
        return None
    if direction == "F":
        return lambda: native(x, kernel, stride, padding)
    y, indices = native(x, kernel, stride, padding)
    y_bar, dilation = in_layout(random(y.shape, dtype), fields), [1] * rank
    return lambda: backward(y_bar, x, kernel, stride, padding, dilation, False, indices)


def avg_pool_call(fields, direction, dtype):
    x, rank, kernel, stride, padding = pool_arguments(fields, dtype)
    if rank != 2:
        return None
    if direction == "F":
        return lambda: aten.avg_pool2d(x, kernel, stride, padding)
    y_bar = in_layout(random(aten.avg_pool2d(x, kernel, stride, padding).shape, dtype), fields)
    return lambda: aten.avg_pool2d_backward(y_bar, x, kernel, stride, padding, False, True, None)


def adaptive_avg_pool_call(fields, direction, dtype):
    x = activation(fields, dtype)
    sizes = [int(n) for n in fields["output_size"].split(",")]
    if x.dim() != 4:
        return None
    if direction == "F":
        return lambda: F.adaptive_avg_pool2d(x, sizes)
    x.requires_grad_()
    y = F.adaptive_avg_pool2d(x, sizes)
    y_bar = in_layout(random(y.shape, dtype), fields)
    return lambda: torch.autograd.grad(y, x, y_bar, retain_graph=True)


def smooth_max_pool_call(fields, direction, dtype):
    """Torch has none: the composition that people write, for windows without padding."""
    x, rank, kernel, stride, padding = pool_arguments(fields, dtype)
    beta = float(fields.get("beta", 1))
    if rank != 2 or any(padding):
        return None

    def forward(x):
        windows = (beta * x).unfold(2, kernel[0], stride[0]).unfold(3, kernel[1], stride[1])
        return torch.logsumexp(windows, (-1, -2)) / beta

    if direction == "F":
        return lambda: forward(x)
    x.requires_grad_()
    y = forward(x)
    y_bar = in_layout(random(y.shape, dtype), fields)
    return lambda: torch.autograd.grad(y, x, y_bar, retain_graph=True)


FUNCTIONS = {
    "hard_sigmoid": F.hardsigmoid, "gelu": F.gelu, "silu": F.silu, "softplus": F.softplus,
    "elu": F.elu, "relu": torch.relu, "leaky_relu": lambda x: F.leaky_relu(x, 0.1),
    "clip": lambda x: torch.clamp(x, 0.2, 0.8),
    "min": torch.minimum, "max": torch.maximum,
}


def elementwise_call(fields, direction, dtype):
    """Of numbers from 0 to 1, as ours."""
    f = FUNCTIONS.get(fields["f"]) or getattr(torch, fields["f"])
    inputs = [torch.rand(shape_of(fields[key]), dtype=dtype) for key in "xab" if key in fields]
    return lambda: f(*inputs)


class UNet(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        twice = lambda i, o: nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.ReLU(),
                                           nn.Conv2d(o, o, 3, padding=1), nn.ReLU())
        self.down1, self.down2, self.down3 = twice(3, 16), twice(16, 32), twice(32, 64)
        self.lift1, self.up1 = nn.ConvTranspose2d(64, 32, 2, stride=2), twice(64, 32)
        self.lift2, self.up2 = nn.ConvTranspose2d(32, 16, 2, stride=2), twice(32, 16)
        self.last = nn.Conv2d(16, 1, 1)

    def forward(self, x):
        fine = self.down1(x)
        middle = self.down2(F.max_pool2d(fine, 2))
        h = self.down3(F.max_pool2d(middle, 2))
        h = self.up1(torch.cat([self.lift1(h), middle], 1))
        return self.last(self.up2(torch.cat([self.lift2(h), fine], 1)))


class Block(torch.nn.Module):
    def __init__(self, i, o):
        super().__init__()
        nn, stride = torch.nn, 1 if i == o else 2
        self.body = nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o),
                                  nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False),
                                  nn.BatchNorm2d(o))
        self.skip = nn.Identity() if i == o else nn.Sequential(
            nn.Conv2d(i, o, 1, stride, bias=False), nn.BatchNorm2d(o))

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


def resnet18():
    nn = torch.nn
    blocks = [Block(i, o) for a, b in [(64, 64), (64, 128), (128, 256), (256, 512)]
              for i, o in [(a, b), (b, b)]]
    return nn.Sequential(nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.MaxPool2d(3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                         nn.Linear(512, 1000))


class Inverted(torch.nn.Module):
    def __init__(self, i, o, stride, expansion):
        super().__init__()
        nn, wide = torch.nn, i * expansion
        layers = [] if expansion == 1 else [nn.Conv2d(i, wide, 1, bias=False), nn.BatchNorm2d(wide),
                                            nn.ReLU6()]
        self.body = nn.Sequential(*layers, nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False),
                                  nn.BatchNorm2d(wide), nn.ReLU6(), nn.Conv2d(wide, o, 1, bias=False),
                                  nn.BatchNorm2d(o))
        self.is_residual = stride == 1 and i == o

    def forward(self, x):
        return x + self.body(x) if self.is_residual else self.body(x)


def mobilenet_v2():
    nn = torch.nn
    blocks, i = [], 32
    for expansion, o, count, stride in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                        (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for block in range(count):
            blocks.append(Inverted(i, o, stride if block == 0 else 1, expansion))
            i = o
    return nn.Sequential(nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU6(),
                         *blocks, nn.Conv2d(320, 1280, 1, bias=False), nn.BatchNorm2d(1280),
                         nn.ReLU6(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2),
                         nn.Linear(1280, 1000))


def lenet5():
    nn = torch.nn
    return nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                         nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(),
                         nn.Linear(84, 10))


def model_call(make, sample, fields, direction):
    model, x = make(), random([int(fields["batch"])] + sample, torch.float32)
    if direction in "IP":
        model.eval()

        def inferring(net, x):
            def infer():
                with torch.inference_mode():
                    net(x)
            return infer
        if direction == "I":
            return inferring(model, x)
        # A compiled program is held against the best that torch offers.
        with torch.inference_mode():
            scripted = torch.jit.optimize_for_inference(torch.jit.freeze(
                torch.jit.trace(model, x)))
        last = dict(memory_format=torch.channels_last)
        modes = [inferring(model, x), inferring(scripted, x),
                 inferring(make().eval().to(**last), x.to(**last))]
        return min(modes, key=lambda call: min(seconds_of(call, 1) for _ in range(4)))
    with torch.no_grad():
        scores = model(x)
    if scores.dim() == 4:
        mask = (random(scores.shape, torch.float32) > 0).float()
        loss = lambda y: F.binary_cross_entropy_with_logits(y, mask)
    else:
        labels = torch.randint(scores.shape[1], [scores.shape[0]])
        loss = lambda y: F.cross_entropy(y, labels)

    def stepping(net, x):
        sgd = torch.optim.SGD(net.parameters(), lr=1e-3)

        def step():
            sgd.zero_grad(set_to_none=True)
            loss(net(x)).backward()
            sgd.step()
        return step
    if direction == "S":
        return stepping(model, x)
    last = dict(memory_format=torch.channels_last)
    modes = [stepping(model, x), stepping(make().to(**last), x.to(**last))]
    return min(modes, key=lambda call: min(seconds_of(call, 1) for _ in range(3)))


CALLS = {
    "lenet5": lambda f, d, t: model_call(lenet5, [1, 28, 28], f, d),
    "unet": lambda f, d, t: model_call(UNet, [3, 128, 128], f, d),
    "resnet18": lambda f, d, t: model_call(resnet18, [3, 224, 224], f, d),
    "mobilenet_v2": lambda f, d, t: model_call(mobilenet_v2, [3, 224, 224], f, d),
    "conv": lambda f, d, t: conv_call(f, d, t, False),
    "conv_transpose": lambda f, d, t: conv_call(f, d, t, True),
    "elementwise": elementwise_call,
    "max_pool": max_pool_call,
    "avg_pool": avg_pool_call,
    "adaptive_avg_pool": adaptive_avg_pool_call,
    "smooth_max_pool": smooth_max_pool_call,
}


def seconds_of(call, repeats):
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def sample(call, effort):
    """As sample.hpp does it."""
    shortest = 50e-6
    if effort["warm_up"]:
        call()
    once = seconds_of(call, 1)
    repeats = int(shortest / once) + 1 if once < shortest else 1
    times, total = ([once], once) if repeats == 1 else ([], 0.0)
    while len(times) < effort["runs"] or total < effort["seconds"]:
        times.append(seconds_of(call, repeats))
        total += times[-1] * repeats
    return times


def status(field):
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(field + ":"))


def keep_pages(keeps):
    """Fresh pages for every result cost more than many operators: torch is timed without them."""
    trim_threshold, mmap_max = -1, -4
    libc = ctypes.CDLL(None)
    libc.mallopt(mmap_max, 0 if keeps else 65536)
    libc.mallopt(trim_threshold, -1 if keeps else 128 << 10)


def peak_memory(call):
    """As memory.cpp does it, with the allocator as people have it."""
    keep_pages(False)
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    before = status("VmRSS")
    call()
    call()
    taken = status("VmHWM") - before
    keep_pages(True)
    return taken


def main():
    keep_pages(True)
    print(json.dumps({"version": torch.__version__}), flush=True)
    made = None, None
    for line in sys.stdin:
        request = json.loads(line)
        torch.set_num_threads(request["threads"])
        key = (request["op"], request["problem"], request["direction"], request["type"])
        if made[0] != key:
            dtype = torch.float64 if request["type"] == "f64" else torch.float32
            call = CALLS.get(request["op"], lambda f, d, t: None)(
                fields_of(request["problem"]), request["direction"], dtype)
            made = (key, call)
        if "effort" in request:
            answer = {"times": sample(made[1], request["effort"]) if made[1] else []}
        else:
            answer = {"memory": peak_memory(made[1])}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
