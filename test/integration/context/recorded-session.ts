import { Gate } from "../../../provider/gate.ts";
import { answer, call, hold, status, thinking } from "../../../provider/reply.ts";
import type { TestsProvider } from "../../helpers/scripts.ts";
import { type Pi, push } from "../extension/driver.ts";

/** A session that pi itself has written, which contains each shape that a session can have. */
export interface RecordedSession {
  readonly entries: readonly Readonly<Record<string, unknown>>[];
  /** The leaf after each shape, by the shape's name. */
  readonly leaves: Readonly<Record<string, string>>;
}

/** A white square of one pixel. */
const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/** Options for {@link recordSession}: pi compacts everything except the last few words. */
export const recordingSettings = { compaction: { enabled: true, reserveTokens: 1_000, keepRecentTokens: 10 } };

/** Makes pi do everything that leaves its own traces in a session. The pi has the fixture `shaping`. */
export async function recordSession(pi: Pi, provider: TestsProvider): Promise<RecordedSession> {
  const leaves: Record<string, string> = {};
  let settled = 0;
  const prompt = async (message: string, more: Readonly<Record<string, unknown>> = {}): Promise<void> => {
    await pi.rpc({ type: "prompt", message, ...more });
    await pi.settled(++settled);
  };
  const mark = async (name: string): Promise<void> => {
    leaves[name] = (await entriesOf(pi)).leafId;
  };

  provider.add(answer(thinking("Let me think."), "A white square."));
  await prompt("What is this?", { images: [{ type: "image", data: png, mimeType: "image/png" }] });
  await mark("an image and reasoning");

  provider.add(
    answer("I try both.", call("bash", { command: "echo one" }), call("bash", { command: "echo two; exit 3" })),
    answer("One has failed."),
  );
  await prompt("Call two tools.");
  await mark("parallel calls, of which one fails");

  await pi.rpc({ type: "bash", command: "echo direct" });
  provider.add(status(500), answer("At the second try."));
  await prompt("What has the command said?");
  await mark("a command of the user's, and an answer that was tried twice");

  provider.add(status(400));
  await prompt("This is refused.");
  const gate = new Gate();
  provider.add(answer("Half of an ans", hold(gate), "wer"));
  await pi.rpc({ type: "prompt", message: "This is aborted." });
  await gate.reached;
  await pi.rpc({ type: "abort" });
  await pi.settled(++settled);
  gate.open();
  await mark("a failed and an aborted answer");

  provider.add(answer("I have read the push."));
  await pi.hold(push(`d-${settled}`, "Something has happened.", { details: { run: 7 } }));
  await pi.settled(++settled);
  provider.add(answer(call("bash", { command: "echo SHORTEN this" })), answer("That was long."));
  await prompt("Call a tool whose result is edited.");
  await mark("a custom message, and an edited result");

  await pi.rpc({ type: "set_session_name", name: "A name" });
  // Summaries are made from the provider's echo.
  await pi.rpc({ type: "compact" });
  provider.add(answer("Behind the compaction."));
  await prompt("And now?");
  await mark("a compaction");

  await pi.rpc({ type: "prompt", message: `/shape-go ${leaves["an image and reasoning"]}` });
  provider.add(answer("On another branch."));
  await prompt("Another question.");
  await mark("a branch that another was left for");

  return { entries: (await entriesOf(pi)).entries, leaves };
}

async function entriesOf(pi: Pi): Promise<{ entries: Readonly<Record<string, unknown>>[]; leafId: string }> {
  const { data } = await pi.rpc({ type: "get_entries" });
  return data as { entries: Readonly<Record<string, unknown>>[]; leafId: string };
}
