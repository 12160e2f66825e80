import { workerData } from "node:worker_threads";
import { LogAppender } from "./change-log.ts";
import { CommitMark } from "./commit-mark.ts";
import { connect } from "./connection.ts";
import {
  endedAt,
  repliesAt,
  type ThreadData,
  type ThreadReply,
  type ThreadRequest,
  Unpacker,
} from "./thread-messages.ts";
import { Writer } from "./writer.ts";

// The program of the writing thread: a writer, and the port for its requests.

const { path, mark, log, port, shared } = workerData as ThreadData;
const unpacker = new Unpacker();
let writer: Writer | undefined;

/** Opens the database at the first request: before it, another thread may hold a lock. */
function opened(): Writer {
  writer ??= new Writer({
    path,
    connection: connect(path),
    connect,
    mark: mark === undefined ? undefined : CommitMark.of(mark),
    log: log === undefined ? undefined : new LogAppender(log),
  });
  return writer;
}

function outcomeOf(request: ThreadRequest): ThreadReply {
  if (request.kind === "commit") return opened().take({ ...request, changes: unpacker.unpack(request.packed) });
  if (request.kind !== "close") return opened().take(request);
  writer?.close();
  return {};
}

function reply(outcome: ThreadReply): void {
  port.postMessage(outcome, outcome.memory === undefined ? [] : [outcome.memory]);
  Atomics.add(shared, repliesAt, 1);
  Atomics.notify(shared, repliesAt);
}

process.on("exit", () => {
  Atomics.store(shared, endedAt, 1);
  Atomics.add(shared, repliesAt, 1);
  Atomics.notify(shared, repliesAt);
});

// An exception ends the thread; the main thread then writes itself.
port.on("message", (request: ThreadRequest) => {
  const outcome = outcomeOf(request);
  const memory = request.kind === "commit" ? request.packed.bytes?.buffer : undefined;
  reply(memory === undefined ? outcome : { ...outcome, memory });
  if (request.kind === "close") port.close();
});
reply({});
