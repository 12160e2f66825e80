import type { Params } from "../../../protocol/methods.ts";
import { type IfRunning, type PromptResult, PromptState } from "../../../protocol/prompt.ts";
import type { promptMethods } from "../../../protocol/prompt-methods.ts";
import type { DeliveryTracker } from "../../delivery/tracker.ts";
import { unlessAborted } from "../../lib/deadline.ts";
import { type PromptLedger, promptNotFound, shown } from "../../prompts/prompt-ledger.ts";
import { resultOf } from "../../prompts/prompting.ts";
import type { QueueKind } from "../../prompts/queued-texts.ts";
import type { Registry } from "../../session/registry.ts";
import { atResponse } from "../answer-place.ts";
import type { Call, HandlersOf } from "../call.ts";
import { requireAlone } from "./session-file.ts";

const defaultWaitMs = 600_000;
const defaultListed = 100;

export function promptHandlers(registry: Registry, tracker: DeliveryTracker): HandlersOf<typeof promptMethods> {
  const prompt = async (params: Params<"session/steer">, ifRunning: IfRunning, call: Call): Promise<PromptResult> => {
    const { sessionId, text, images, wait, timeoutMs = defaultWaitMs } = params;
    const session = registry.get(sessionId);
    const { prompting } = session;
    const { ledger } = session.prompts;
    const { signal, by, effect } = call;
    const promptId = params.promptId ?? effect?.id;
    const result = await prompting.prompt({
      promptId,
      text,
      images,
      ifRunning,
      expectedRunId: params.expectedRunId,
      ifIdle: params.ifIdle,
      signal,
      // With `wait`, the answer comes after the run.
      ...(wait === undefined && { atResponse: atResponse(session, call) }),
      by,
      reserved: effect?.reserved,
      group: effect?.id,
    });
    const warnings = session.context.promptGiven(text) ? { warnings: ["duplicate_prompt" as const] } : {};
    const taken = { ...result, ...warnings };
    if (wait === undefined || taken.disposition === "handled") return taken;
    const settled = await over(ledger, taken.promptId, timeoutMs, signal);
    return { ...settled, ...warnings, disposition: taken.disposition };
  };

  return {
    "session/prompt": (params, call) => prompt(params, params.ifRunning ?? "refuse", call),
    "session/steer": (params, call) => prompt(params, "steer", call),
    "session/followUp": (params, call) => prompt(params, "followUp", call),
    "session/abort": async ({ sessionId, expectedRunId, ifAlone }, call) => {
      const session = registry.get(sessionId);
      if (ifAlone === true) requireAlone(session, call);
      const underWay = tracker.underWay(sessionId);
      // An abort of a specific run does not end the summary of a branch.
      if (expectedRunId === undefined) session.parts.abortNavigation();
      return {
        aborted: await session.prompting.abort({
          by: call.by,
          expectedRunId,
          signal: call.signal,
          atResponse: atResponse(session, call),
        }),
        deliveries: await tracker.effects(underWay),
      };
    },
    "session/clearQueue": async ({ sessionId }, call) => {
      const underWay = tracker.underWay(sessionId);
      const session = registry.get(sessionId);
      const cleared = await session.prompting.clearQueue(call.by, atResponse(session, call));
      await session.pushing.clear();
      return { ...cleared, deliveries: await tracker.effects(underWay) };
    },
    "session/getQueue": ({ sessionId }) => {
      const queued = registry.get(sessionId).prompts.ledger.queued();
      const of = (kind: QueueKind) =>
        queued
          .filter((message) => message.kind === kind)
          .map(({ text, prompt }) => ({
            text,
            ...(prompt === undefined ? {} : { promptId: prompt.promptId }),
            ...(prompt?.by === undefined ? {} : { by: prompt.by }),
          }));
      return { steering: of("steering"), followUp: of("followUp") };
    },
    "prompt/cancel": async ({ promptId }, { signal, by }) => {
      const known = registry.findPrompt(promptId);
      if (known === undefined) throw promptNotFound(promptId);
      const { prompting, prompts } = registry.get(known.sessionId);
      await unlessAborted(prompting.cancel(promptId, signal, by), signal);
      const prompt = await prompts.ledger.decided(promptId);
      return { cancelled: prompt.state === "withdrawn", prompt: shown(prompt, true) };
    },
    "session/waitForIdle": async ({ sessionId, timeoutMs = defaultWaitMs }, { signal }) => {
      const session = registry.get(sessionId);
      await session.idleness.wait(timeoutMs, signal);
      const { state, cursor } = session.info();
      return { state, cursor };
    },
    "prompt/get": ({ promptId }) => {
      const known = registry.findPrompt(promptId);
      if (known === undefined) throw promptNotFound(promptId);
      return shown(known, true);
    },
    "prompt/wait": async ({ promptId, timeoutMs = defaultWaitMs }, { signal }) => {
      const prompt = registry.findPrompt(promptId);
      if (prompt === undefined) throw promptNotFound(promptId);
      return await over(registry.get(prompt.sessionId).prompts.ledger, promptId, timeoutMs, signal);
    },
    "prompt/list": ({ sessionId, states = PromptState.enum, limit = defaultListed }) => ({
      prompts: registry
        .get(sessionId)
        .prompts.ledger.list(states, limit)
        .map((known) => shown(known)),
    }),
  };
}

/** The outcome of a prompt, when it and its run have ended. */
async function over(
  ledger: PromptLedger,
  promptId: string,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<PromptResult> {
  const { prompt, end } = await ledger.over(promptId, timeoutMs, signal);
  return {
    ...resultOf(prompt),
    // A prompt that was lost with its pi had no run, or an interrupted one.
    ...(prompt.state === "lost" ? { outcome: "interrupted" as const } : {}),
    ...(end?.text === undefined ? {} : { text: end.text }),
    ...(end?.textTruncated === true ? { textTruncated: true } : {}),
  };
}
