"""Another program than the one that trained it: reads a model file and compiles it for one picture.

    python3 mobilenet_infer.py [FILE]
"""

import sys

import fenestra as fn
from fenestra import nn

model = nn.load(sys.argv[1] if len(sys.argv) > 1 else "mobilenet.safetensors")
picture, label = nn.open_dataset("digits", "test")[0]
program = fn.compile(model, picture.reshape(1, 1, 8, 8), fold=True)
scores = program(picture.reshape(1, 1, 8, 8))
print(f"{nn.predicted_classes(scores)[0]}, a {label}; {program.peak_bytes} bytes for {model.kind}")
