"""An ONNX file of any tool, tuned for another task: here digits, from a network that knew five of them.

    python3 onnx_finetune.py [FOLDER]

Leaves five.onnx and tuned.onnx behind, which other runtimes read. The same in C++: examples/onnx.cpp.
"""

import pathlib
import sys

import fenestra as fn
from fenestra import nn

folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".")
five = nn.Sequential(nn.Conv(1, 8, kernel=3), nn.Relu(), nn.Flatten(), nn.Linear(288, 5))
fn.onnx.export_model(folder / "five.onnx", nn.initialise(five, 1), (1, 8, 8))

net = fn.onnx.load(folder / "five.onnx", classes=10)  # a new last layer
print(net.inputs[0].name, "->", net.outputs[0].shape, list(net.parameters()))
net.set_trained("0.*", False)                         # the convolution stays as it is
training = nn.Loader(nn.open_dataset("digits"), batch=32, seed=1)
held_out = nn.Loader(nn.open_dataset("digits", "test"), batch=179)
trainer = nn.Trainer(net, optimiser="adamw rate=0.005")
result = trainer.fit(training, 3, validation=held_out)
print(f"{result.validation.score:.1%} of the held-out digits are right")

trainer.trained().save(folder / "tuned.onnx")         # the file that was read, with other weights
again = fn.onnx.load(folder / "tuned.onnx")
picture, label = nn.open_dataset("digits", "test")[0]
program = fn.compile(again, picture.reshape(1, 1, 8, 8))
print(f"{nn.predicted_classes(program(picture.reshape(1, 1, 8, 8)))[0]}, a {label}")
