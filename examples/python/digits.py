"""Trains a small convolutional network on the handwritten digits in data/digits and draws its filters.

    python3 digits.py [DATA_FOLDER [OUTPUT_FOLDER]]

NumPy arrays in and out: two convolutions, two poolings, one linear layer; cross entropy; Adam
written in five lines. One of ten images is held out. Leaves filters.png behind: what the first
layer looks for, and what it sees in one digit.
"""

# %% The data: 8x8 images, 0 to 1
import pathlib
import struct
import sys
import zlib

import numpy as np

import fenestra as fn

root = pathlib.Path(__file__).resolve().parents[2]
data = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else root / "data" / "digits")
output = pathlib.Path(sys.argv[2] if len(sys.argv) > 2 else ".")

images = np.load(data / "images.npy").reshape(-1, 1, 8, 8).astype(np.float32) / 16
labels = np.load(data / "labels.npy").astype(np.int64)
held_out = np.arange(len(labels)) % 10 == 9

# %% The model: parameters are a dict of arrays, the network a function of them
rng = np.random.default_rng(1)


def weight(*shape):
    bound = np.sqrt(6 / np.prod(shape[1:]))
    return rng.uniform(-bound, bound, shape).astype(np.float32)


parameters = {
    "conv1": (weight(12, 1, 5, 5), np.zeros(12, np.float32)),
    "conv2": (weight(24, 12, 3, 3), np.zeros(24, np.float32)),
    "linear": (weight(10, 24 * 2 * 2), np.zeros(10, np.float32)),
}


def network(parameters, x):
    h = fn.max_pool2d(fn.relu(fn.conv2d(x, *parameters["conv1"], padding=2)), 2)
    h = fn.max_pool2d(fn.relu(fn.conv2d(h, *parameters["conv2"], padding=1)), 2)
    return fn.linear(h.reshape(len(h), -1), *parameters["linear"])


def loss(parameters, x, y):
    return fn.cross_entropy(network(parameters, x), y)


def accuracy(parameters, x, y):
    return np.mean(network(parameters, x).numpy().argmax(axis=1) == y)


# %% Training: gradients by value_and_grad, updates in place on the arrays
gradients = fn.value_and_grad(loss)
leaves = fn.tree_flatten(parameters)
mean = [np.zeros_like(w) for w in leaves]
square = [np.zeros_like(w) for w in leaves]
step = 0
x, y = images[~held_out], labels[~held_out]
for epoch in range(1, 13):
    for chosen in np.array_split(rng.permutation(len(x)), len(x) // 32):
        value, bars = gradients(parameters, x[chosen], y[chosen])
        step += 1
        for w, bar, m, s in zip(leaves, fn.tree_flatten(bars), mean, square):
            bar = bar.numpy()
            m += 0.1 * (bar - m)
            s += 0.001 * (bar * bar - s)
            w -= 2e-3 * (m / (1 - 0.9**step)) / (np.sqrt(s / (1 - 0.999**step)) + 1e-8)
    print(f"epoch {epoch:2}  loss {value.item():.4f}  "
          f"held out {accuracy(parameters, images[held_out], labels[held_out]):.3f}")

# %% How sharp is the minimum? The curvature along the gradient, by a Hessian-vector product
direction = fn.grad(loss)(parameters, x[:200], y[:200])
length = np.sqrt(sum(np.sum(d.numpy() ** 2) for d in fn.tree_flatten(direction)))
unit = fn.tree_map(lambda d: d / length, direction)
curved = fn.hvp(lambda p: loss(p, x[:200], y[:200]), (parameters,), (unit,))
curvature = sum(np.sum(c.numpy() * u.numpy())
                for c, u in zip(fn.tree_flatten(curved), fn.tree_flatten(unit)))
print(f"curvature along the gradient: {curvature:.4f}")


# %% The pictures: filters above, what they see in one digit below
def png(path, picture):
    """A grey picture, values 0 to 1, as a PNG file."""
    pixels = np.clip(np.round(picture * 255), 0, 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def strip(pictures, cell):
    """Pictures side by side, each stretched to the full range, cell by cell enlarged."""
    tiles = []
    for picture in pictures:
        low, high = picture.min(), picture.max()
        large = np.kron((picture - low) / (high - low + 1e-9), np.ones((cell, cell)))
        tiles.append(np.pad(large, 4, constant_values=1))
    return np.concatenate(tiles, axis=1)


digit = images[held_out][3]
seen = fn.relu(fn.conv2d(digit, *parameters["conv1"], padding=2)).numpy()
filters = strip(parameters["conv1"][0][:, 0], 16)
answers = strip(np.concatenate([digit, seen[:-1]]), 10)
width = max(filters.shape[1], answers.shape[1])
rows = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=1)
        for part in (filters, answers)]
output.mkdir(parents=True, exist_ok=True)
png(output / "filters.png", np.concatenate(rows))

final = accuracy(parameters, images[held_out], labels[held_out])
print(f"held out: {final:.1%} right; {output / 'filters.png'} written")
sys.exit(0 if final > 0.95 else 1)
