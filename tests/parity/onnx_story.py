"""The story of docs/onnx.md to its end: a network is trained on the digits, exported, given another head, trained on and
written back, and ONNX Runtime says of held-out digits what we say. See scripts/compare-onnxruntime.

Called with the tool and a folder.
"""

import json
import pathlib
import shutil
import subprocess
import sys

import numpy as np

import fenestra as fn
from fenestra import nn

ROOT = pathlib.Path(__file__).resolve().parents[2]


def main(tool, folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for words in (["train", "lenet", "--data", "digits", "--width", "0.5", "--epochs", "4", "--output", "run"],
                  ["convert", "run/model.safetensors", "0.onnx"],
                  ["finetune", "0.onnx", "--data", "digits", "--head", "0", "--freeze", "conv1.*", "--output", "1.onnx"]):  # fmt: skip
        subprocess.run([tool, *words, "--force"], cwd=folder, check=True, capture_output=True)
    digits = nn.open_dataset(f"digits:{ROOT / 'data' / 'digits'}", "test")
    shape = (len(digits), *(d if isinstance(d, int) else 28 for d in fn.onnx.load(folder / "0.onnx").inputs[0].shape[1:]))
    images = np.stack([np.asarray(fn.resize(np.asarray(digits[i][0], np.float32)[None], shape[2:]))[0] for i in range(shape[0])])
    for number in range(2):
        (folder / f"{number}.input").write_bytes(images.astype(np.float32).tobytes())
    described = {"inputs": [{"name": "input", "type": "float32", "extents": list(shape)}], "outputs": ["output"]}
    (folder / "index.json").write_text(json.dumps([described, described]))
    subprocess.run(["node", pathlib.Path(__file__).with_name("onnx_versions.cjs"), folder], check=True)
    wrong = 0
    for number, said in enumerate(json.loads((folder / "results.json").read_text())):
        there = np.frombuffer((folder / said["outputs"][0]["file"]).read_bytes(), np.float32).reshape(shape[0], -1)
        here, exact = (np.asarray(fn.onnx.load(folder / f"{number}.onnx", dtype=dtype)(images.astype(dtype)))
                       for dtype in ("float32", "float64"))  # fmt: skip
        # The longest of five layers' sums has at most 400 products; their sizes are those of the scores, within some ten.
        bound = 5 * 400 * 2.0**-24 * np.abs(exact).max()
        off = [float(np.abs(scores - exact).max()) for scores in (here, there)]
        same = np.array_equal(here.argmax(axis=1), there.argmax(axis=1))
        wrong += not (same and max(off) <= bound)
        print(f"{('exported', 'tuned')[number]} digits: {shape[0]} of {shape[0]} alike" if same else "other classes",
              f"off by {off[0]:.1e} here, {off[1]:.1e} there, allowed {bound:.1e}", sep=", ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])))
