"""ONNX files written by hand: protobuf's wire format in a few lines, sharing nothing with the library."""

import struct

import numpy as np

FLOAT, INT64, BOOL = 1, 7, 9


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes(out + bytes([number]))


def field(number, value):
    """Of a message: a whole number, a text, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value


def attribute(name, value):
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    return field(1, name) + field(3, value) + field(20, 2)


def node(op, inputs, outputs, **attributes):
    parts = [field(1, name) for name in inputs] + [field(2, name) for name in outputs]
    return b"".join(parts) + field(4, op) + b"".join(
        field(5, attribute(name, value)) for name, value in attributes.items())


def value(name, kind, shape):
    """A number, a label or None for each axis."""
    dims = b"".join(field(1, field(1, d) if isinstance(d, int) else field(2, d) if d else b"") for d in shape)
    return field(1, name) + field(2, field(1, field(1, kind) + field(2, dims)))


def tensor(name, numbers):
    kind = {"float32": FLOAT, "int64": INT64}[numbers.dtype.name]
    dims = b"".join(field(1, extent) for extent in numbers.shape)
    return dims + field(2, kind) + field(8, name) + field(9, np.ascontiguousarray(numbers).tobytes())


def model(nodes, inputs, outputs, tensors=(), opset=17, metadata={}):
    graph = b"".join(field(1, n) for n in nodes) + field(2, "graph")
    graph += b"".join(field(5, t) for t in tensors)
    graph += b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs)
    more = b"".join(field(14, field(1, key) + field(2, text)) for key, text in metadata.items())
    return field(1, 8) + field(2, "by hand") + field(7, graph) + field(8, field(1, "") + field(2, opset)) + more
