// Runs the files of export_layers with ONNX Runtime and compares. Called with the folder.
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-node");

const folder = process.argv[2];
const numbers = (file) => {
  const bytes = fs.readFileSync(path.join(folder, file));
  return new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
};

(async () => {
  let wrong = 0;
  const lines = fs.readFileSync(path.join(folder, "index.txt"), "utf8").trim().split("\n");
  for (const line of lines) {
    const [name, extents, kind] = line.split(" ");
    try {
      const session = await ort.InferenceSession.create(path.join(folder, name + ".onnx"), {
        logSeverityLevel: 3,
        intraOpNumThreads: 1,
      });
      const x = new ort.Tensor("float32", numbers(name + ".x"), extents.split("x").map(Number));
      const y = (await session.run({ input: x })).output.data;
      const expected = numbers(name + ".y");
      const largest = expected.reduce((most, value) => Math.max(most, Math.abs(value)), 0);
      const off = expected.reduce((most, value, i) => Math.max(most, Math.abs(value - y[i])), 0);
      // Sums of at most some hundred products in float32.
      if (y.length !== expected.length || !(off <= 1e-5 * (1 + largest))) {
        ++wrong;
        console.log(`${name} (${kind}): off by ${off}`);
      }
    } catch (error) {
      ++wrong;
      console.log(`${name} (${kind}): ${String(error).split("\n")[0]}`);
    }
  }
  console.log(`${lines.length} layers, ${wrong} differ`);
  process.exit(wrong ? 1 : 0);
})();
