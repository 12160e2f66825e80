import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { LINK_VERSION } from "../protocol/link.ts";
import { DialogAnnouncer } from "./dialog-announcer.ts";
import type { Engine } from "./engine-port.ts";
import { Inbound } from "./link/inbound.ts";
import { Outbound } from "./link/outbound.ts";
import type { LinkIdentity } from "./memory.ts";

/** Connects the engine to the daemon: outward frames use the status key, inward frames the command. */
export function linkToDaemon(
  pi: ExtensionAPI,
  engine: Engine,
  link: LinkIdentity,
  configured: () => Promise<void> | undefined,
): void {
  const outbound = new Outbound(link.statusKey);
  const dialogs = new DialogAnnouncer(pi, outbound, engine.memory.customUi);
  const inbound = new Inbound(engine, outbound, dialogs);
  engine.listen({
    send: (frame) => outbound.send(frame),
    fault: (where, thrown, part) => outbound.fault(where, thrown, part),
    configured,
    bind: (ctx) => {
      outbound.bind(ctx);
      dialogs.bind(ctx);
    },
    sessionStarted: ({ reason }, ctx) => {
      const sessionFile = ctx.sessionManager.getSessionFile();
      outbound.send({
        kind: "hello",
        link: LINK_VERSION,
        command: link.command,
        reason,
        sessionId: ctx.sessionManager.getSessionId(),
        ...(sessionFile === undefined ? {} : { sessionFile }),
      });
    },
  });
  pi.registerCommand(link.command, {
    description: "Used by pi-rpcd.",
    handler: async (text: string, ctx: ExtensionContext) => {
      engine.frameReceived();
      await inbound.receive(text, ctx);
    },
  });
}
