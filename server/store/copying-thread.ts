import { parentPort, workerData } from "node:worker_threads";
import { writeCopy } from "./copy.ts";

// The program of the thread that copies the store: its result is the number of the newest commit in the copy.

parentPort?.postMessage(writeCopy(String(workerData)));
