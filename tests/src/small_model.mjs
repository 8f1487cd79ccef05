// An OpenAI-compatible server over a small model in this process: streams real tokens, and stops when the client hangs up.
// node small_model.mjs <node_modules> <model.gguf>; prints its port.
import http from "node:http";
import { pathToFileURL } from "node:url";

const [modules, modelPath] = process.argv.slice(2);
const { getLlama, LlamaCompletion } = await import(pathToFileURL(`${modules}/node-llama-cpp/dist/index.js`).href);
const llama = await getLlama({ gpu: false, build: "never", progressLogs: false });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 2048, threads: 2 });
const completion = new LlamaCompletion({ contextSequence: context.getSequence() });

let last = Promise.resolve();
const server = http.createServer((request, response) => {
  let body = "";
  request.on("data", (piece) => (body += piece));
  request.on("end", () => {
    const { messages } = JSON.parse(body);
    const stop = new AbortController();
    response.on("close", () => stop.abort());
    const send = (delta, finish_reason = null) =>
      response.write(`data: ${JSON.stringify({ object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] })}\n\n`);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const text = messages.filter((m) => m.role === "user").map((m) => m.content).join("\n").slice(-2000);
    // One sequence: one answer at a time.
    last = last.then(async () => {
      let tokens = 0;
      try {
        await completion.generateCompletion(text, {
          maxTokens: 400, temperature: 0, signal: stop.signal,
          onTextChunk(content) { tokens += 1; send({ content }); },
        });
      } catch { /* The client has hung up. */ }
      const stopped = stop.signal.aborted;
      send({}, "stop");
      response.end("data: [DONE]\n\n");
      console.log(JSON.stringify({ tokens, stopped }));
    });
  });
});
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
