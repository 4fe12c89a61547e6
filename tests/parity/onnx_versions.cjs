// Runs the models of onnx_versions.py with ONNX Runtime. Called with the folder that holds index.json; leaves the
// outputs as raw numbers and results.json.
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-node");

const folder = process.argv[2];
const arrays = { float32: Float32Array, int64: BigInt64Array, bool: Uint8Array };

(async () => {
  const results = [];
  for (const [number, { inputs, outputs }] of JSON.parse(fs.readFileSync(path.join(folder, "index.json"))).entries()) {
    try {
      const session = await ort.InferenceSession.create(path.join(folder, `${number}.onnx`), {
        logSeverityLevel: 4,
        intraOpNumThreads: 1,
      });
      const given = {};
      for (const { name, type, extents } of inputs) {
        const bytes = fs.readFileSync(path.join(folder, `${number}.${name}`));
        const buffer = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
        given[name] = new ort.Tensor(type, new arrays[type](buffer), extents);
      }
      const found = await session.run(given);
      results.push({
        outputs: outputs.map((name) => {
          const { data, dims, type } = found[name];
          const file = `${number}.${name}`;
          fs.writeFileSync(path.join(folder, file), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
          return { type, extents: dims, file };
        }),
      });
    } catch (error) {
      results.push({ error: String(error).split("\n")[0].slice(0, 160) });
    }
  }
  fs.writeFileSync(path.join(folder, "results.json"), JSON.stringify(results));
})();
