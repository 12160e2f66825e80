import { expect, test } from "vitest";
import { type Client, connect, type WireError } from "../../client/index.ts";
import { Gate } from "../../provider/gate.ts";
import { answer, delayed, hold } from "../../provider/reply.ts";
import { Notifications, type Told } from "../helpers/notifications.ts";
import { startStage } from "../helpers/stage.ts";

const kindOf = (attempt: Promise<unknown>): Promise<string> =>
  attempt.then(
    () => "success",
    (error: WireError) => error.kind,
  );

const signed =
  (client: Client, name: string, fits: (params: Told["params"]) => boolean = () => true) =>
  (told: Told) =>
    told.name === name &&
    (told.params["by"] as { clientId?: string } | undefined)?.clientId === client.id &&
    fits(told.params);

test("with two clients on one session everything is attributed, and one of them can take exclusive control", async () => {
  const gate = new Gate();
  const script = [answer("one"), delayed(hold(gate), answer("late")), answer("pushed")];
  await using stage = await startStage({ provider: { script } });
  const { stateDir } = stage;
  await using ada = await connect({ stateDir, name: "Ada's editor", validateResults: true });
  await using bob = await connect({ stateDir, validateResults: true });
  const mine = await ada.createSession({ cwd: stage.cwd, model: "scripted/model-1" });
  const his = bob.session(mine.id);
  await using told = await Notifications.of(stateDir, mine.id);

  await mine.promptAndWait("hello");
  const prompted = await told.until(signed(ada, "prompt/updated"));
  expect(prompted.params["by"]).toEqual({ clientId: ada.id, name: "Ada's editor" });
  await told.until(signed(ada, "run/started"));
  await told.until(signed(ada, "session/updated", ({ session }) => (session as { state: string }).state === "running"));

  const waiting = his.prompt("wait").settled();
  await gate.reached;
  await mine.abort();
  expect(await waiting).toMatchObject({ outcome: "aborted" });
  await told.until(signed(bob, "run/started"));
  await told.until(signed(ada, "run/ended", ({ outcome }) => outcome === "aborted"));

  const push = his.push({ customType: "note", content: "x", deliverAs: "nextTurn" });
  await push.accepted;
  await mine.delivery(push.id).cancel();
  await told.until(
    signed(bob, "delivery/updated", ({ delivery }) => (delivery as { state: string }).state === "accepted"),
  );
  await told.until(
    signed(ada, "delivery/updated", ({ delivery }) => (delivery as { state: string }).state === "cancelled"),
  );

  await mine.command({ type: "set_session_name", name: "named by Ada" });
  await told.until(
    signed(ada, "session/updated", ({ session }) => (session as { name?: string }).name === "named by Ada"),
  );

  const control = await mine.acquireControl({ policy: "exclusive" });
  expect(control).toMatchObject({ policy: "exclusive", controller: { clientId: ada.id } });
  expect(await kindOf(his.prompt("may I?"))).toBe("not_controller");
  expect(await kindOf(his.delivery(push.id).cancel())).toBe("not_controller");
  expect((await his.get()).control).toMatchObject({ controller: { name: "Ada's editor" } });
  expect(await his.command({ type: "get_state" })).toBeDefined();
  expect(await kindOf(his.acquireControl())).toBe("not_controller");

  await mine.releaseControl({ to: bob.id });
  expect(await kindOf(mine.prompt("may I?"))).toBe("not_controller");
  await told.until(signed(ada, "session/controlChanged", ({ change }) => change === "handed_over"));
  await mine.acquireControl({ takeOver: true, policy: "shared" });
  expect(await his.promptAndWait("now I may")).toBe("pushed");
  expect(await kindOf(mine.releaseControl({ to: "nobody-here" }))).toBe("client_not_found");
});
