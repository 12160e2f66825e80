import { expect, it } from "vitest";
import { WireError } from "../../../protocol/errors.ts";
import { FakeDaemon } from "./fake-daemon.ts";
import { delivery, sessionId } from "./fixtures.ts";

it("asks for what has listeners, again on a new connection, and for no more when they have left", async () => {
  await using daemon = await FakeDaemon.start();
  daemon.answer("daemon/subscribe", () => ({}));
  daemon.answer("daemon/unsubscribe", () => ({ wasSubscribed: true }));
  await using client = await daemon.connect({ reconnect: { firstDelayMs: 1 } });
  const asked = (): unknown[] => daemon.seen("daemon/subscribe").map(({ params }) => params);

  const updated: string[] = [];
  const changed: string[] = [];
  const leaves = [
    await client.onDeliveryUpdated(({ delivery: { deliveryId } }) => updated.push(deliveryId)),
    await client.onDialogChanged(({ change }) => changed.push(change)),
  ];
  await client.setAnswersDialogs(true);
  leaves.push(await client.onSessionChanged(() => {}));
  expect(asked()).toEqual([{ deliveries: true }, { dialogs: "observe" }, { dialogs: "answer" }, {}]);

  daemon.breakSockets();
  const again = await daemon.called("daemon/subscribe", 5);
  expect(again.params).toEqual({ deliveries: true, dialogs: "answer" });
  daemon.notify("daemon/deliveryUpdated", { sessionId, delivery: delivery("d-1", ["accepted"]) });
  daemon.notify("daemon/dialogChanged", { sessionId, change: "updated", dialogId: "dialog-1", openToOthersAt: 1 });
  await client.info();
  expect([updated, changed]).toEqual([["d-1"], ["updated"]]);

  await client.setAnswersDialogs(false);
  expect(asked().at(-1)).toEqual({ dialogs: "observe" });
  for (const leave of leaves) leave();
  await daemon.called("daemon/unsubscribe");
  expect(asked().slice(6)).toEqual([{ deliveries: false }, { dialogs: "off" }]);
});

it("answers no dialogs after the daemon has refused that", async () => {
  await using daemon = await FakeDaemon.start();
  daemon.answer("daemon/subscribe", ({ dialogs }) => {
    if (dialogs === "answer") throw new WireError("forbidden", "It may not prompt.");
    return {};
  });
  await using client = await daemon.connect({ reconnect: { firstDelayMs: 1 } });
  await expect(client.setAnswersDialogs(true)).rejects.toMatchObject({ kind: "forbidden" });
  await client.onSessionChanged(() => {});
  daemon.breakSockets();
  expect((await daemon.called("daemon/subscribe", 3)).params).toEqual({});
});
