import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { DialogMethod } from "../protocol/dialog.ts";
import type { HelperConfig } from "../protocol/link.ts";
import { CustomUiUnsupportedError } from "./api/errors.ts";
import type { Outbound } from "./link/outbound.ts";

/** Channel of `pi.events` that announces questions no client can answer to other extensions. */
const DIALOG_CHANNEL = "pi-rpcd:dialog";

export type DialogEvent =
  | {
      /** pi's dialog id. The asking extension does not know it and recognises its question by the title. */
      readonly requestId: string;
      readonly method: DialogMethod;
      /** First 200 characters of the title. */
      readonly title: string;
      readonly reason: "no_responder";
    }
  | { readonly method: "custom"; readonly reason: "custom_ui_unsupported" };

type CustomUi = ExtensionContext["ui"]["custom"];

/**
 * pi's original `custom`, stored on our replacement, because a session can start twice on the same `ui` with different
 * modules.
 */
const original = Symbol.for("pi-rpcd.custom-ui");

/** Announces questions that cannot reach a client to the daemon and to the other extensions in this pi. */
export class DialogAnnouncer {
  readonly #pi: Pick<ExtensionAPI, "events">;
  readonly #outbound: Outbound;
  readonly #customUi: HelperConfig["customUi"];

  constructor(pi: Pick<ExtensionAPI, "events">, outbound: Outbound, customUi: HelperConfig["customUi"]) {
    this.#pi = pi;
    this.#outbound = outbound;
    this.#customUi = customUi;
  }

  announce(event: DialogEvent): void {
    // The bus passes references: a listener must not change the event for the next one.
    this.#pi.events.emit(DIALOG_CHANNEL, Object.freeze(event));
  }

  /** Replaces `custom` on the `ui` that all extensions of the session share. Called at each session start. */
  bind({ mode, ui }: ExtensionContext): void {
    if (mode !== "rpc") return;
    try {
      const custom = (ui.custom as CustomUi & { [original]?: CustomUi })[original] ?? ui.custom;
      const reportThenCall = async (...given: Parameters<CustomUi>): Promise<unknown> => {
        this.#unsupported();
        if (this.#customUi === "throw") throw new CustomUiUnsupportedError();
        return await custom.apply(ui, given);
      };
      ui.custom = Object.assign(reportThenCall, { [original]: custom }) as CustomUi;
    } catch (thrown) {
      this.#outbound.fault("custom-ui", thrown);
    }
  }

  #unsupported(): void {
    try {
      const data = { method: "custom", reason: "custom_ui_unsupported" } as const;
      this.#outbound.send({ kind: "notice", name: "dialog/unsupported", data });
      this.announce({ ...data });
    } catch {
      // The extension outlived its session: keep pi's own behaviour.
    }
  }
}
