// An extension with a command: /tell The build is green.
// Load it by `pi --extension tell.ts`. In a project of your own, import from "pi-rpcd/extension".
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { DeliveryFailedError, deliver, openDelivery } from "../../extension/index.ts";

export default function tell(pi: ExtensionAPI): void {
  openDelivery(pi);
  pi.registerCommand("tell", {
    description: "Tells the model something, even in the middle of its work.",
    handler: async (content, ctx) => {
      const { delivered } = deliver(pi, { customType: "tell", content }, { deliverAs: "steer", triggerTurn: true });
      delivered.then(
        ({ evidence }) => ctx.ui.notify(`The model has it. Evidence: ${evidence}.`),
        (error: unknown) => {
          // A session that was replaced has no display any more.
          if (error instanceof DeliveryFailedError) ctx.ui.notify(error.message, "warning");
        },
      );
    },
  });
}
