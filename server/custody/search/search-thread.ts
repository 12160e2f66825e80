import { parentPort } from "node:worker_threads";
import { type SearchOrder, searchFiles } from "./file-search.ts";

// Entry point of a worker thread: one search, then it ends.

parentPort?.once("message", (order: SearchOrder) => {
  void searchFiles(order).then((answer) => parentPort?.postMessage(answer));
});
