import { join } from "node:path";
import type { Client, PiCommand } from "../../client/index.ts";
import { DirectChild } from "./direct-child.ts";
import type { RecordSource } from "./drain.ts";
import type { Resources } from "./figure.ts";
import type { RawClient } from "./raw-client.ts";

/** The program that replaces pi if pi itself would limit the measurement. */
export const echoPi = join(import.meta.dirname, "..", "fixtures", "echo-pi.mjs");

export function startEchoDirectly(resources: Resources): DirectChild {
  return DirectChild.start({ args: [echoPi] }, resources);
}

export function directSource(child: DirectChild): RecordSource {
  return {
    emit: (file, { start, end }) => child.request({ type: "emit", file, start, end }),
    listen: (onRecord) => {
      child.onRecord = onRecord;
    },
  };
}

/** Frames are counted and not parsed. */
export function rawSource(client: RawClient, sessionId: string): RecordSource {
  return {
    emit: (file, { start, end }) => {
      const command: PiCommand = { type: "emit", file, start, end };
      return client.request("session/command", { sessionId, command });
    },
    listen: (onRecord) => {
      client.onEvent = onRecord;
    },
  };
}

/** Envelopes as the client library delivers them. */
export async function librarySource(client: Client, sessionId: string): Promise<RecordSource> {
  const session = client.session(sessionId);
  const events = session.events();
  await events.ready;
  let tell: () => void = () => {};
  void (async () => {
    for await (const _ of events) tell();
  })().catch(() => {});
  return {
    emit: (file, { start, end }) => session.command({ type: "emit", file, start, end }),
    listen: (onRecord) => {
      tell = onRecord;
    },
  };
}
