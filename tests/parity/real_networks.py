"""Networks of other people on real pictures, beside ONNX Runtime; see scripts/real-networks.

Called with the folder that the script has filled. Leaves text.png, screen.png, faces1.png, ... there: look at them.
"""

import json
import pathlib
import shutil
import struct
import subprocess
import sys
import time
import zlib

import numpy as np

import fenestra as fn
from fenestra import nn

folder = pathlib.Path(sys.argv[1])
RUNTIME = pathlib.Path(__file__).with_name("real_networks.cjs")
CALLS, ROUNDS = 5, 3
DRAWS = 4
failed = []
ratios = {}

# --- Pictures ---


def picture(path):
    """(3, H, W), 0 to 1; read by the library, as a folder of one class."""
    place = folder / "one"
    shutil.rmtree(place, ignore_errors=True)
    (place / "all").mkdir(parents=True)
    for copy in "ab":  # one to learn from, one held out
        shutil.copy(path, place / "all" / (copy + path.suffix))
    return np.asarray(nn.open_dataset(f"folder:{place}", "train", channels=3, held_out=0.5)[0][0])


def resized(image, height, width):
    return np.asarray(fn.resize(image[None], (height, width)))[0]


def save_png(path, image):
    pixels = np.clip(np.round(image.transpose(1, 2, 0) * 255), 0, 255).astype(np.uint8)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind, content):
        body = kind + content
        return struct.pack(">I", len(content)) + body + struct.pack(">I", zlib.crc32(body))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
                     + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def draw_box(image, box, colour, width=2):
    x0, y0, x1, y1 = (int(round(v)) for v in box)
    h, w = image.shape[1:]
    x0, x1, y0, y1 = max(0, x0), min(w - 1, x1), max(0, y0), min(h - 1, y1)
    for grow in range(width):
        top, bottom = slice(max(0, y0 - grow), y0 - grow + 1), slice(y1 + grow, y1 + grow + 1)
        left, right = slice(max(0, x0 - grow), x0 - grow + 1), slice(x1 + grow, x1 + grow + 1)
        for rows, columns in ((top, slice(x0, x1)), (bottom, slice(x0, x1)), (slice(y0, y1), left), (slice(y0, y1), right)):
            image[:, rows, columns] = np.reshape(colour, (3, 1, 1))


# --- Two runtimes ---


def in_onnxruntime(model, name, x):
    place = folder / "job"
    place.mkdir(exist_ok=True)
    (place / "x").write_bytes(np.ascontiguousarray(x, np.float32).tobytes())
    (place / "job.json").write_text(json.dumps(
        {"model": str(model), "calls": CALLS, "inputs": [{"name": name, "file": "x", "extents": list(x.shape)}]}))
    subprocess.run(["node", RUNTIME, place], check=True)
    result = json.loads((place / "result.json").read_text())
    outputs = {o["name"]: np.frombuffer((place / o["file"]).read_bytes(), np.float32).reshape(o["extents"])
               for o in result["outputs"]}  # fmt: skip
    return outputs, min(result["seconds"])


def distance(outputs, exact):
    """The largest over all outputs, of the largest number of each."""
    return max(float(np.abs(outputs[key] - exact[key]).max() / np.abs(exact[key]).max())
               if outputs[key].shape == exact[key].shape else np.inf for key in exact)  # fmt: skip


def in_float64(net, name, x):
    return {key: np.asarray(value) for key, value in net.run({name: x.astype(np.float64)}).items()}


def rounding_distance(model, name, x, exact):
    """How far rounding in float32 may move the outputs: most of how far they move, in float64, where every weight is
    half a unit of float32 off, up or down, over some draws; times sqrt(K) for sums of K products. Each of K products
    is then off as if it were rounded, K/2 such errors in a row are those of the additions, and errors that know
    nothing of each other grow with the square root of their number. A network tells by this how well it is conditioned:
    one line of text may be a hundred times worse than the next.
    """
    net = fn.onnx.load(model, dtype="float64")
    weights = {key: np.asarray(value) for key, value in net.parameters().items()}
    products = max(value.size // value.shape[0] if value.ndim > 2 else value.shape[0] for value in weights.values() if value.ndim)
    rng = np.random.default_rng(1)
    most = 2.0**-24  # of the outputs themselves
    for _ in range(DRAWS):
        net.update({key: value * (1 + 2.0**-24 * rng.choice([-1.0, 1.0], value.shape)) for key, value in weights.items()})
        most = max(most, distance(in_float64(net, name, x), exact))
    return float(np.sqrt(products)) * most


def in_both(title, model, x):
    """The outputs of the network for its only input, computed here, there, and here in float64."""
    net = fn.onnx.load(model)
    name = net.inputs[0].name
    x = np.ascontiguousarray(x, np.float32)
    program = fn.compile(lambda v: net.run({name: v}), x)
    ours = {key: np.asarray(value) for key, value in program(x).items()}
    seconds, their_seconds = [], []  # of the processor: the least of each is what the load of the machine leaves alone
    for _ in range(ROUNDS):
        for _ in range(CALLS):
            begin = time.process_time()
            program(x)
            seconds.append(time.process_time() - begin)
        theirs, least = in_onnxruntime(model, name, x)
        their_seconds.append(least)
    exact = in_float64(fn.onnx.load(model, dtype="float64"), name, x)
    off, theirs_off = distance(ours, exact), distance(theirs, exact)
    allowed = rounding_distance(model, name, x, exact)
    ratios.setdefault(title, []).append(min(seconds) / min(their_seconds))
    print(f"{title} {'x'.join(map(str, x.shape))}: {len(theirs)} outputs, off by {off:.1e} of the largest, ONNX Runtime's "
          f"by {theirs_off:.1e}, allowed {allowed:.1e}; {1e3 * min(seconds):.1f} ms here, {1e3 * min(their_seconds):.1f} ms there")
    if not max(off, theirs_off) <= allowed:
        failed.append(f"{title}: off by {off}, ONNX Runtime's by {theirs_off}, allowed {allowed}")
    return ours


# --- Text ---


def components(mask):
    """Boxes (x0, y0, x1, y1) of what hangs together, and which cells they are."""
    label = np.zeros(mask.shape, int)
    found = []
    for start in zip(*np.nonzero(mask)):
        if label[start]:
            continue
        label[start] = len(found) + 1
        cells, waiting = [], [start]
        while waiting:
            y, x = waiting.pop()
            cells.append((y, x))
            for ny, nx in ((y + 1, x), (y - 1, x), (y, x + 1), (y, x - 1)):
                if 0 <= ny < mask.shape[0] and 0 <= nx < mask.shape[1] and mask[ny, nx] and not label[ny, nx]:
                    label[ny, nx] = len(found) + 1
                    waiting.append((ny, nx))
        found.append(np.array(cells))
    return found


def text_boxes(probability):
    """The network marks the core of each line; a line is larger by its area over its length."""
    boxes = []
    for cells in components(probability > 0.3):
        y0, x0 = cells.min(axis=0)
        y1, x1 = cells.max(axis=0) + 1
        h, w = y1 - y0, x1 - x0
        if min(h, w) < 4 or probability[cells[:, 0], cells[:, 1]].mean() < 0.6:
            continue
        grow = 1.5 * h * w / (2 * (h + w))
        boxes.append((x0 - grow, y0 - grow, x1 + grow, y1 + grow))
    return sorted(boxes, key=lambda box: (round(box[1] / 10), box[0]))


def find_text(path, title):
    image = picture(path)
    height, width = (max(32, round(extent / 32) * 32) for extent in image.shape[1:])
    image = resized(image, height, width)
    mean, deviation = np.reshape([0.485, 0.456, 0.406], (3, 1, 1)), np.reshape([0.229, 0.224, 0.225], (3, 1, 1))
    found = in_both("text detection", models / "ch_PP-OCRv4_det_infer.onnx", ((image - mean) / deviation)[None])
    boxes = text_boxes(next(iter(found.values()))[0, 0])
    marked = image.copy()
    for box in boxes:
        draw_box(marked, box, (1, 0, 0))
    save_png(folder / f"{title}.png", marked)
    print(f"  {len(boxes)} lines of text; {folder / title}.png")
    return image, boxes


def line_of(image, box, most):
    """A line of text, 48 cells high and at most so wide; -1 to 1."""
    x0, y0, x1, y1 = (max(0, int(round(v))) for v in box)
    cut = image[:, y0:y1, x0:x1]
    width = min(most, max(8, round(48 * cut.shape[2] / cut.shape[1])))
    return resized(np.ascontiguousarray(cut), 48, width) * 2 - 1


def patched_in_both(model, x):
    """The file with one weight changed, which ONNX Runtime must read as we do."""
    net = fn.onnx.load(model)
    name, weight = next(iter(net.parameters().items()))
    net.update({name: np.asarray(weight) * np.float32(1.25)})
    net.save(folder / "patched.onnx", {"tuned": "one weight"})
    said = in_both("a file written back", folder / "patched.onnx", x)
    if not np.array_equal(*(np.asarray(n(np.ascontiguousarray(x, np.float32))) for n in (net, fn.onnx.load(folder / "patched.onnx")))):
        failed.append("a file written back: other numbers than before")
    return said


def read_text(image, boxes):
    padded = lambda line: np.pad(line, ((0, 0), (0, 0), (0, 192 - line.shape[2])))
    upright = np.stack([padded(line_of(image, box, 192)) for box in boxes])
    turned = np.stack([padded(line_of(image, box, 192)[:, ::-1, ::-1]) for box in boxes])
    classifier = models / "ch_ppocr_mobile_v2.0_cls_infer.onnx"
    said = [next(iter(in_both("text direction", classifier, x).values())) for x in (upright, turned)]
    right = [int((said[0][:, 0] > said[0][:, 1]).sum()), int((said[1][:, 1] > said[1][:, 0]).sum())]
    print(f"  upright: {right[0]} of {len(boxes)} right, upside down: {right[1]} of {len(boxes)}")
    if sum(right) < 1.5 * len(boxes):
        failed.append("text direction: too few lines are right")
    patched_in_both(classifier, upright)
    keys = ["", *(models / "ppocr_keys_v1.txt").read_text(encoding="utf-8").split("\n")]
    lines = []
    for box in boxes:
        scores = next(iter(in_both("text recognition", models / "ch_PP-OCRv4_rec_infer.onnx",
                                   line_of(image, box, 640)[None]).values()))[0]
        best = scores.argmax(axis=1)
        lines.append("".join(keys[k] if k < len(keys) else " " for i, k in enumerate(best) if k and (i == 0 or k != best[i - 1])))
        print(f"  {lines[-1]}")
    return lines


# --- Faces ---


def faces_of(outputs, least=0.75):
    """Boxes of anchors on three grids, the likeliest of those that overlap; with five points each."""
    found = []
    for stride, scales in ((32, (32, 16)), (16, (8, 4)), (8, (2, 1))):
        score, shift, points = (outputs[f"face_rpn_{what}_stride{stride}"][0]
                                for what in ("cls_prob_reshape", "bbox_pred", "landmark_pred"))  # fmt: skip
        for number, scale in enumerate(scales):
            side = 16.0 * scale
            for y, x in zip(*np.nonzero(score[len(scales) + number] >= least)):
                cx, cy = x * stride + 8.0, y * stride + 8.0
                dx, dy, dw, dh = shift[4 * number : 4 * number + 4, y, x]
                w, h = side * np.exp(dw), side * np.exp(dh)
                mx, my = cx + side * dx, cy + side * dy
                marks = points[10 * number : 10 * number + 10, y, x].reshape(5, 2) * side * POINT_SCALE + (cx, cy)
                found.append((score[len(scales) + number, y, x], (mx - w / 2, my - h / 2, mx + w / 2, my + h / 2), marks))
    found.sort(key=lambda face: -face[0])
    kept = []
    for face in found:
        if all(overlap(face[1], other[1]) <= 0.4 for other in kept):
            kept.append(face)
    return kept


POINT_SCALE = 1.0 / 5.5


def overlap(a, b):
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    both = max(0.0, width) * max(0.0, height)
    return both / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both)


def find_faces(path, title):
    image = picture(path)
    scale = 640 / max(image.shape[1:])
    image = resized(image, round(image.shape[1] * scale), round(image.shape[2] * scale))
    square = np.zeros((3, 640, 640), np.float32)
    square[:, : image.shape[1], : image.shape[2]] = image
    faces = faces_of(in_both("face detection", folder / "retinaface" / "mnet.25_v2.onnx", 255 * square[None]))
    marked = image.copy()
    for _, box, marks in faces:
        draw_box(marked, box, (0, 1, 0))
        for x, y in marks:
            draw_box(marked, (x - 1, y - 1, x + 2, y + 2), (1, 0, 0), 1)
    save_png(folder / f"{title}.png", marked)
    print(f"  {len(faces)} faces; {folder / title}.png")
    return faces


models = folder / "ocr-models" / "assets"
page, lines = find_text(folder / "ocrad" / "examples" / "message.png", "text")
words = " ".join(read_text(page, lines))
if "desperate need of" not in words or "text and lorem ipsum" not in words:
    failed.append(f"text recognition: read {words!r}")
find_text(folder / "face-api" / "demo" / "screenshot-images.png", "screen")
for i in (1, 2):  # three people in each
    if len(find_faces(folder / "face-api" / "demo" / f"sample{i}.jpg", f"faces{i}")) != 3:
        failed.append(f"faces{i}: not three faces")
for title, all_of in ratios.items():
    print(f"{title}: {np.median(all_of):.2f} of ONNX Runtime's processor time, one thread each, "
          f"least of {ROUNDS} times {CALLS} calls, in turn")
if failed:
    sys.exit("\n".join(failed))
