"""ONNX files written by hand: protobuf's wire format in a few lines, sharing nothing with the library."""

import struct

import numpy as np

FLOAT, INT64, BOOL = 1, 7, 9
KINDS = {"float32": FLOAT, "int64": INT64, "bool": BOOL}


def varint(number):
    """A negative one takes ten bytes, as the format has it."""
    number &= 2**64 - 1
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
    """Of the type that the value has: a whole or floating-point number, a text, an array, a list, or bytes: a graph."""
    if isinstance(value, float):
        return field(1, name) + varint(2 << 3 | 5) + struct.pack("<f", value) + field(20, 1)
    if isinstance(value, str):
        return field(1, name) + field(4, value) + field(20, 3)
    if isinstance(value, np.ndarray):
        return field(1, name) + field(5, tensor("", value)) + field(20, 4)
    if isinstance(value, bytes):
        return field(1, name) + field(6, value) + field(20, 5)
    if isinstance(value, list):
        real = any(isinstance(each, float) for each in value)
        parts = [varint(7 << 3 | 5) + struct.pack("<f", each) if real else field(8, each) for each in value]
        return field(1, name) + b"".join(parts) + field(20, 6 if real else 7)
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
    kind = KINDS[numbers.dtype.name]
    dims = b"".join(field(1, extent) for extent in numbers.shape)
    return dims + field(2, kind) + field(8, name) + field(9, np.ascontiguousarray(numbers).tobytes())


def graph(nodes, inputs, outputs, tensors=()):
    return (b"".join(field(1, n) for n in nodes) + field(2, "graph") + b"".join(field(5, t) for t in tensors)
            + b"".join(field(11, v) for v in inputs) + b"".join(field(12, v) for v in outputs))


def model(nodes, inputs, outputs, tensors=(), opset=17, metadata={}):
    more = b"".join(field(14, field(1, key) + field(2, text)) for key, text in metadata.items())
    return field(1, 8) + field(2, "by hand") + field(7, graph(nodes, inputs, outputs, tensors)) + field(8, field(1, "") + field(2, opset)) + more
