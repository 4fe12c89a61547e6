// Runs one network with ONNX Runtime on one thread. Called with a folder that holds job.json (model,
// inputs with their extents, calls to time); leaves the outputs as raw float32 and result.json with the processor time
// of each call.
const fs = require("fs");
const path = require("path");
const ort = require("onnxruntime-node");

const folder = process.argv[2];
const job = JSON.parse(fs.readFileSync(path.join(folder, "job.json"), "utf8"));

(async () => {
  const session = await ort.InferenceSession.create(job.model, {
    logSeverityLevel: 3,
    intraOpNumThreads: 1,
    interOpNumThreads: 1,
  });
  const inputs = {};
  for (const { name, file, extents } of job.inputs) {
    const bytes = fs.readFileSync(path.join(folder, file));
    const numbers = new Float32Array(
      bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
    );
    inputs[name] = new ort.Tensor("float32", numbers, extents);
  }
  let outputs = await session.run(inputs);
  const seconds = [];
  for (let i = 0; i < job.calls; ++i) {
    const begin = process.cpuUsage();
    outputs = await session.run(inputs);
    const { user, system } = process.cpuUsage(begin);
    seconds.push((user + system) / 1e6);
  }
  const result = { seconds, outputs: [] };
  for (const [i, name] of session.outputNames.entries()) {
    const { data, dims } = outputs[name];
    fs.writeFileSync(path.join(folder, `output${i}`), Buffer.from(data.buffer, data.byteOffset, data.byteLength));
    result.outputs.push({ name, extents: dims, file: `output${i}` });
  }
  fs.writeFileSync(path.join(folder, "result.json"), JSON.stringify(result));
})();
