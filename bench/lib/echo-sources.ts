import { join } from "node:path";
import type { Client, PiCommand } from "../../client/index.ts";
import { compileC } from "./compile.ts";
import { DirectChild } from "./direct-child.ts";
import type { RecordSource } from "./drain.ts";
import type { Resources, Setting } from "./figure.ts";
import type { RawClient } from "./raw-client.ts";

/** The program that replaces pi if pi itself would limit the measurement. */
export const echoPi = join(import.meta.dirname, "..", "fixtures", "echo-pi.mjs");

/**
 * The program for hundreds of children, which must leave the processor to the daemon: written in C, or the same without
 * a C compiler.
 */
export async function streamPi({ directory }: Setting): Promise<string> {
  const program = join(directory, "stream-pi");
  return (await compileC("stream-pi.c", ["-o", program])) ? program : echoPi;
}

export function startEchoDirectly(resources: Resources): DirectChild {
  return DirectChild.start({ args: [echoPi] }, resources);
}

export function directSource(child: DirectChild): RecordSource {
  return {
    emit: (file, { start, end }) => child.request({ type: "emit", file, start, end }),
    listen: (onRecords) => {
      child.onRecord = () => onRecords(1);
    },
  };
}

/** Each frame is parsed, as the direct reader parses each record. */
export function rawSource(client: RawClient, sessionId: string): RecordSource {
  return {
    emit: (file, { start, end }) => {
      const command: PiCommand = { type: "emit", file, start, end };
      return client.request("session/command", { sessionId, command });
    },
    listen: (onRecords) => {
      client.onEvent = (frame) => onRecords(covered(JSON.parse(frame.toString("utf8")).params));
    },
  };
}

/** Each record is parsed. */
export function relayedSource(client: RawClient): RecordSource {
  return {
    emit: (file, { start, end }) => client.passOn({ type: "emit", file, start, end }),
    listen: (onRecords) => {
      client.onRecord = () => onRecords(1);
    },
  };
}

/** Envelopes as the client library delivers them. */
export async function librarySource(client: Client, sessionId: string): Promise<RecordSource> {
  const session = client.session(sessionId);
  const events = session.events();
  await events.ready;
  let tell: (count: number) => void = () => {};
  void (async () => {
    for await (const envelope of events) tell(covered(envelope));
  })().catch(() => {});
  return {
    emit: (file, { start, end }) => session.command({ type: "emit", file, start, end }),
    listen: (onRecords) => {
      tell = onRecords;
    },
  };
}

/** The number of records in an envelope. */
function covered({ seq, firstSeq = seq }: { readonly seq: number; readonly firstSeq?: number }): number {
  return seq - firstSeq + 1;
}
