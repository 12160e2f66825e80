import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import type { DialogMethod } from "../protocol/dialog.ts";
import type { HelperConfig } from "../protocol/link.ts";
import { CustomUiUnsupportedError } from "./api/errors.ts";
import type { Outbound } from "./link/outbound.ts";

/** On this channel of `pi.events` other extensions hear of questions that no client can answer. */
const DIALOG_CHANNEL = "pi-rpcd:dialog";

export type DialogEvent =
  | {
      /** pi's own id of the dialog, which the extension that asks does not know: it finds its question by the title. */
      readonly requestId: string;
      readonly method: DialogMethod;
      /** Its first 200 characters. */
      readonly title: string;
      readonly reason: "no_responder";
    }
  | { readonly method: "custom"; readonly reason: "custom_ui_unsupported" };

type CustomUi = ExtensionContext["ui"]["custom"];

/** The `custom` that pi itself has made, kept with ours: a session may begin twice on one `ui`, by other modules. */
const original = Symbol.for("pi-rpcd.custom-ui");

/** Tells the other extensions in this pi, and the daemon, of questions that cannot reach a client. */
export class DialogNews {
  readonly #pi: Pick<ExtensionAPI, "events">;
  readonly #outbound: Outbound;
  readonly #customUi: HelperConfig["customUi"];

  constructor(pi: Pick<ExtensionAPI, "events">, outbound: Outbound, customUi: HelperConfig["customUi"]) {
    this.#pi = pi;
    this.#outbound = outbound;
    this.#customUi = customUi;
  }

  announce(event: DialogEvent): void {
    // The bus passes references: one listener must not change what the next one gets.
    this.#pi.events.emit(DIALOG_CHANNEL, Object.freeze(event));
  }

  /** Puts `custom` on the `ui` that all extensions of the session share. Called at each start of a session. */
  bind({ mode, ui }: ExtensionContext): void {
    if (mode !== "rpc") return;
    try {
      const custom = (ui.custom as CustomUi & { [original]?: CustomUi })[original] ?? ui.custom;
      const told = async (...given: Parameters<CustomUi>): Promise<unknown> => {
        this.#unsupported();
        if (this.#customUi === "throw") throw new CustomUiUnsupportedError();
        return await custom.apply(ui, given);
      };
      ui.custom = Object.assign(told, { [original]: custom }) as CustomUi;
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
      // An extension that outlives its session: it gets what it would get without us.
    }
  }
}
