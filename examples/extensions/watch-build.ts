// An extension that tells the model what a build says, whenever it says something new, and knows when the model has it.
// Load it by `pi --extension watch-build.ts`. In a project of your own, import from "pi-rpcd/extension".
import { type FSWatcher, readFileSync, watch } from "node:fs";
import { join } from "node:path";
import type { ExtensionAPI, ExtensionContext } from "@earendil-works/pi-coding-agent";
import { DeliveryFailedError, deliver, openDelivery } from "../../extension/index.ts";

const name = "build-status.txt";

export default function watchBuild(pi: ExtensionAPI): void {
  // In the entry function: what delivers must see pi's events from the first on.
  openDelivery(pi);
  let watcher: FSWatcher | undefined;
  let last: string | undefined;

  const look = (ctx: ExtensionContext): void => {
    const content = read(join(ctx.cwd, name));
    if (content === undefined || content === last) return;
    last = content;
    const { delivered } = deliver(
      pi,
      { customType: "build", content: `The build says: ${content}` },
      { deliverAs: "steer", triggerTurn: true },
    );
    delivered.then(
      ({ evidence }) => ctx.ui.notify(`The model knows of the build. Evidence: ${evidence}.`),
      (error: unknown) => {
        // Parked: a later run will carry it. Everything else is final.
        if (error instanceof DeliveryFailedError) ctx.ui.notify(error.message, "warning");
      },
    );
  };

  pi.on("session_start", (_event, ctx) => {
    watcher?.close();
    watcher = watch(ctx.cwd, { persistent: false }, (_kind, file) => {
      if (file === name) look(ctx);
    });
    look(ctx);
  });
  pi.on("session_shutdown", () => watcher?.close());
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch {
    return undefined;
  }
}
