"""A small MobileNet (inverted residuals), trained on the bundled digits and saved as one file.

    python3 mobilenet.py [FILE [EPOCHS]]

mobilenet_infer.py reads it. The same in C++: examples/mobilenet.cpp.
"""

import sys

from fenestra import nn


def block(in_, out, stride):
    body = nn.Sequential(
        nn.conv_norm_act(in_, 4 * in_, kernel=1, act=nn.Relu6()),
        nn.conv_norm_act(4 * in_, 4 * in_, stride=stride, groups=4 * in_, act=nn.Relu6()),
        nn.conv_norm(4 * in_, out, kernel=1))
    return nn.Residual(body) if stride == 1 and in_ == out else body


net = nn.Sequential(nn.conv_norm_act(1, 16), block(16, 16, 1), block(16, 24, 2), block(24, 24, 1),
                    nn.GlobalAvgPool(), nn.Flatten(), nn.Linear(24, 10))
nn.initialise(net, nn.Key(1))
training = nn.Loader(nn.open_dataset("digits"), batch=32, seed=1)
test = nn.Loader(nn.open_dataset("digits", "test"), batch=179)
trainer = nn.Trainer(net, optimiser="adamw rate=0.005", schedule="one-cycle")
result = trainer.fit(training, int(sys.argv[2]) if len(sys.argv) > 2 else 6, validation=test,
                     on_epoch=lambda epoch: print(f"epoch {epoch.epoch}  loss {epoch.loss:.4f}"))
nn.save(trainer.trained(), sys.argv[1] if len(sys.argv) > 1 else "mobilenet.safetensors")
print(f"{result.validation.score:.1%} of the held-out digits are right")
