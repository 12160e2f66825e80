import { ResourceStack } from "../../server/lib/resource-stack.ts";
import { RawClient } from "./raw-client.ts";

// A separate process that pushes at a steady rate until its stdin ends, and then prints how many of the pushes were
// accepted per second. Arguments: a daemon's socket, its token, a session, pushes per second.

const [socketPath = "", token = "", sessionId = "", rate = ""] = process.argv.slice(2);
const everyMs = 4;
const resources = new ResourceStack();
const client = await RawClient.open({ socketPath, token }, "unix", resources);
const content = "x".repeat(300);
const startedAt = performance.now();
let sent = 0;
let accepted = 0;
const timer = setInterval(() => {
  const due = ((performance.now() - startedAt) / 1_000) * Number(rate);
  for (; sent < due; sent += 1) {
    client.request("delivery/push", { sessionId, customType: "bench", content }).then(
      () => {
        accepted += 1;
      },
      () => {},
    );
  }
}, everyMs);
process.stdout.write("started\n");
process.stdin.resume().on("end", () => {
  clearInterval(timer);
  process.stdout.write(`${accepted / ((performance.now() - startedAt) / 1_000)}\n`);
  void resources.release();
});
