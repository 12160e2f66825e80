import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { LINK_VERSION, NO_LINK } from "../protocol/link.ts";
import { DialogAnnouncer } from "./dialog-announcer.ts";
import type { Engine } from "./engine-port.ts";
import { Inbound } from "./link/inbound.ts";
import { Outbound } from "./link/outbound.ts";
import type { LinkIdentity } from "./memory.ts";

const description = "Used by pi-rpcd.";

/**
 * Makes the daemon start another pi: a helper of another version began this link, and this one cannot use its memory.
 * The command stays, so that no frame on its way goes to the model as a prompt.
 */
export function refuseLink(pi: ExtensionAPI, { statusKey, command }: LinkIdentity): void {
  const outbound = new Outbound(statusKey);
  pi.on("session_start", ({ reason }, ctx) => {
    outbound.bind(ctx);
    outbound.send({ kind: "hello", link: NO_LINK, command, reason, sessionId: ctx.sessionManager.getSessionId() });
  });
  pi.registerCommand(command, { description, handler: async () => {} });
}

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
    description,
    handler: async (text: string, ctx: ExtensionContext) => {
      engine.frameReceived();
      await inbound.receive(text, ctx);
    },
  });
}
