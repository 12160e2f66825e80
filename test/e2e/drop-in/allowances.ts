import { merge } from "./normalise.ts";
import type { PiRecord } from "./records.ts";

/** A difference between pi and the drop-in that the specification allows (section 10 of it), for one scenario. */
export interface Allowance {
  readonly name: `D${1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 | 10 | 11}`;
  /**
   * The records that pi and the drop-in must have in common. Records that differ in another way than the allowed one
   * stay as they are, so that the comparison finds them.
   */
  readonly apply: (records: readonly PiRecord[], of: { readonly isDropIn: boolean }) => readonly PiRecord[];
  /** The exit code with which pi alone ends, with words on stderr; the drop-in ends with 0 and is silent. */
  readonly piExit?: number;
}

type Name = Allowance["name"];

/** Stands for the records that an allowance covers. */
function mark(name: Name): PiRecord {
  return { type: `allowed_${name}` };
}

const isResponse =
  (id: string) =>
  (record: PiRecord): boolean =>
    record.type === "response" && record.id === id;

/** `steer` and `follow_up` while idle: pi keeps the message, the drop-in starts one run with it. */
export function idleQueueStartsRun(text: string): Allowance {
  return {
    name: "D1",
    apply: (records, { isDropIn }) => {
      const last = records.findLastIndex((record) =>
        isDropIn ? record.type === "agent_settled" : queues(record, text),
      );
      const first = isDropIn ? records.findLastIndex(({ type }, at) => at < last && type === "agent_start") : last;
      if (last === -1 || first === -1) return records;
      const covered = records.slice(first, last + 1);
      const users = covered.filter(({ type, message }) => type === "message_start" && message?.role === "user");
      const hasText = JSON.stringify(users.map(({ message }) => message?.content)).includes(JSON.stringify(text));
      if (isDropIn && !(users.length === 1 && hasText)) return records;
      const responses = covered.filter(({ type }) => type === "response");
      return [...records.slice(0, first), ...responses, ...records.slice(last + 1), mark("D1")];
    },
  };
}

function queues(record: PiRecord, text: string): boolean {
  return record.type === "queue_update" && JSON.stringify([record["steering"], record["followUp"]]).includes(text);
}

/** `compact` in a run: pi aborts the run, the drop-in refuses and the run ends by itself. */
export function compactInRunIsRefused(id: string): Allowance {
  return {
    name: "D2",
    apply: (records, { isDropIn }) => {
      const response = records.find(isResponse(id));
      const end = records.findLast(({ type, message }) => type === "message_end" && message?.role === "assistant");
      const isAllowed = !isDropIn || (response?.success === false && end?.message?.stopReason === "stop");
      const from = isDropIn ? records.findIndex(isResponse(id)) : abortedAt(records);
      return isAllowed && from !== -1 ? [...records.slice(0, from), mark("D2")] : records;
    },
  };
}

/** Where an aborted answer ends; it has no delta after that. */
function abortedAt(records: readonly PiRecord[]): number {
  const end = records.findIndex(({ type, message }) => type === "message_end" && message?.stopReason === "aborted");
  const isBlockEnd = records[end - 1]?.assistantMessageEvent?.type?.endsWith("_end") === true;
  return isBlockEnd ? end - 1 : end;
}

/** A second `bash` waits for the first: responses and output come in the order of the commands. */
export function secondBashWaits(...ids: readonly string[]): Allowance {
  const rank = ({ type, command, id }: PiRecord): number =>
    type === "bash_execution_update" || (type === "response" && command === "bash") ? ids.indexOf(String(id)) : -1;
  return {
    name: "D3",
    apply: (records) => {
      const sorted = records.filter((record) => rank(record) >= 0).sort((a, b) => rank(a) - rank(b));
      return [...records.filter((record) => rank(record) < 0), mark("D3"), ...merge(sorted)];
    },
  };
}

/** The line `null` ends pi; the drop-in answers the next command, `id`. */
export function nullEndsNothing(id: string): Allowance {
  return {
    name: "D4",
    piExit: 1,
    apply: (records, { isDropIn }) => {
      if (!isDropIn) return [...records, mark("D4")];
      const next = records.findIndex(isResponse(id));
      if (records[next]?.success !== true) return records;
      // Whether the line itself is answered is left open.
      const answer = records[next - 1];
      const kept = answer?.type === "response" && answer.success === false ? next - 1 : next;
      return [...records.slice(0, kept), mark("D4"), ...records.slice(next + 1)];
    },
  };
}

/** Two prompts back to back: pi loses one; the drop-in refuses it or has it in a message. */
export function noPromptIsLost(prompts: Readonly<Record<string, string>>): Allowance {
  return {
    name: "D6",
    apply: (records, { isDropIn }) => {
      const messages = JSON.stringify(records.filter(({ type }) => type === "message_start"));
      const isKept = ([id, text]: readonly [string, string]): boolean => {
        const response = records.find(isResponse(id));
        return response?.success === false || (response?.success === true && messages.includes(JSON.stringify(text)));
      };
      return !isDropIn || Object.entries(prompts).every(isKept) ? [mark("D6")] : records;
    },
  };
}

/** The end of stdin ends pi, and so the session's extensions; the drop-in detaches. They notify of it with this text. */
export function extensionsDoNotEnd(text: string): Allowance {
  return {
    name: "D5",
    apply: (records, { isDropIn }) => {
      const isTold = records.at(-1)?.["method"] === "notify" && String(records.at(-1)?.message) === text;
      return !isDropIn && isTold ? records.slice(0, -1) : records;
    },
  };
}

/** `session_start` of a `new_session` has another reason. The extension notifies of it as `session_start REASON`. */
export const newSessionHasOtherReason: Allowance = {
  name: "D7",
  apply: (records) =>
    records.map((record, at) => {
      const isReason = record["method"] === "notify" && /^session_start (?:new|resume)$/.test(String(record.message));
      const command = records.slice(at).find(({ type }) => type === "response")?.command;
      return isReason && command === "new_session" ? { ...record, message: "session_start D7" as never } : record;
    }),
};

/** Malformed commands and unknown levels: the drop-in refuses, in its own words. */
export function refusedInOwnWords(...ids: readonly string[]): Allowance {
  return { name: "D9", apply: answered("D9", ids) };
}

/** A command over `maxFrameBytes`: the drop-in refuses it and does not send it. */
export function tooLongIsRefused(id: string): Allowance {
  return { name: "D11", apply: answered("D11", [id]) };
}

/** Only which command was answered is compared; the drop-in must refuse it and say why. */
function answered(name: Name, ids: readonly string[]): Allowance["apply"] {
  return (records, { isDropIn }) =>
    records.flatMap((record): readonly PiRecord[] => {
      // pi runs a `bash` without a command.
      if (record.type === "bash_execution_update" && ids.includes(String(record.id))) return isDropIn ? [record] : [];
      if (record.type !== "response" || !ids.includes(String(record.id))) return [record];
      const { id, type, command, success, error } = record as PiRecord & { readonly error?: unknown };
      const isAllowed = !isDropIn || (success === false && typeof error === "string" && error !== "");
      return [isAllowed ? ({ id, type, command, allowed: name } as PiRecord) : record];
    });
}

/** `--session` with another directory's id: pi asks on stdin, the drop-in opens the session. */
export function otherDirectoryOpens(id: string, sessionId: string): Allowance {
  return {
    name: "D10",
    piExit: 0,
    apply: (records, { isDropIn }) => {
      const response = records.find(isResponse(id));
      return !isDropIn || response?.data?.["sessionId"] === sessionId ? [mark("D10")] : records;
    },
  };
}
