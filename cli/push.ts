import { type Delivery, type DeliveryHandle, DeliveryError, type WaitUntil } from "../client/index.ts";
import { type Command, type Context, noStart, oneOf, text, UsageError, wholeNumber } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import { readText } from "./read-text.ts";
import { Receipt } from "./receipt.ts";
import { sessionArgument, sessionOf } from "./session-argument.ts";

export const push: Command = {
  name: "push",
  summary: "push a message into a session's agent, and wait until the model really got it",
  arguments: `${sessionArgument} TEXT...`,
  positionals: { min: 2, max: Number.POSITIVE_INFINITY },
  options: {
    type: { value: "TYPE", summary: "the message's custom type", fallback: "note" },
    as: { value: "HOW", summary: "steer, followUp or nextTurn", fallback: "steer" },
    "no-trigger": { summary: "start no run for it when the agent is idle" },
    id: { value: "ID", summary: "the delivery's id, to repeat a push safely", fallback: "a new one" },
    details: { value: "JSON", summary: "an object kept with the message and never sent to the model" },
    wait: { value: "STATE", summary: "wait for inserted, prepared, delivered or answered", fallback: "do not wait" },
    timeout: { value: "SECONDS", summary: "how long to wait, up to 86400", fallback: "600" },
    ...noStart,
  },
  startsDaemon: true,
  examples: ["pi-rpcd push last 'The build is red: see build.log' --wait delivered", "make 2>&1 | pi-rpcd push last - --type build --as followUp"],
  run: async (context) => {
    const { positionals, options, output, json } = context;
    const [argument = "", ...words] = positionals;
    const until = oneOf(options, "wait", ["inserted", "prepared", "delivered", "answered"]);
    const timeoutSeconds = wholeNumber(options, "timeout", { min: 0, max: 86_400 }) ?? 600;
    const deliverAs = oneOf(options, "as", ["steer", "followUp", "nextTurn"]);
    const deliveryId = text(options, "id");
    const details = detailsOf(text(options, "details"));
    const content = await readText(words);
    const client = await context.connect();
    try {
      const session = await sessionOf(client, argument);
      const handle = session.push({
        customType: text(options, "type") ?? "note",
        content,
        ...(deliverAs === undefined ? {} : { deliverAs }),
        ...(options["no-trigger"] === true ? { triggerTurn: false } : {}),
        ...(deliveryId === undefined ? {} : { deliveryId }),
        ...(details === undefined ? {} : { details }),
      });
      const accepted = await handle.accepted;
      if (until !== undefined) return await wait(handle, until, timeoutSeconds * 1_000, context);
      if (json) output.json(accepted);
      else output.line(handle.id);
      return exitCodes.done;
    } finally {
      await client.close();
    }
  },
};

async function wait(handle: DeliveryHandle, until: WaitUntil, timeoutMs: number, { output, json }: Context): Promise<number> {
  const watching = new AbortController();
  const signal = AbortSignal.any([watching.signal, AbortSignal.timeout(timeoutMs)]);
  const receipt = new Receipt(output);
  if (!json) output.line(handle.id);
  const show = (delivery: Delivery): void => (json ? output.json(delivery) : receipt.show(delivery));
  const shown = (async () => {
    for await (const delivery of handle.updates({ signal })) show(delivery);
  })().catch(() => {});
  try {
    const delivery = await handle.wait(until, { signal });
    watching.abort();
    await shown;
    if (!json) receipt.show(delivery);
    return exitCodes.done;
  } catch (error) {
    watching.abort();
    await shown;
    if (error instanceof DeliveryError) {
      if (!json) receipt.show(error.delivery);
      output.note(error.message);
      return exitCodes.otherOutcome;
    }
    if (!signal.aborted) throw error;
    output.note(`not ${until} within ${timeoutMs / 1_000} s; the push goes on: it is ${handle.state ?? "not known"}`);
    return exitCodes.deadline;
  }
}

function detailsOf(json: string | undefined): Record<string, unknown> | undefined {
  if (json === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Said below.
  }
  throw new UsageError("--details takes a JSON object.");
}
