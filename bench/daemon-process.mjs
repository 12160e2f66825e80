// Runs the daemon of a build as a process of its own, whatever the command line can do. Ends with its stdin.
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [dist, stateDir, pi] = process.argv.slice(2);
const load = (file) => import(pathToFileURL(join(dist, "server", file)).href);
const { startDaemon } = await load("daemon.js");
const { createLog } = await load("log.js");
const daemon = await startDaemon({ stateDir, pi, env: process.env, log: createLog({ level: "warn" }) });
process.stdout.write(`${JSON.stringify(daemon.file)}\n`);
process.stdin.resume().on("end", () => void daemon.stop());
process.on("SIGTERM", () => void daemon.stop());
await daemon.closed;
