import { randomBytes } from "node:crypto";
import { WireError } from "../../protocol/errors.ts";
import { type Deferred, deferred } from "../lib/deferred.ts";
import type { PiCommand, PiResponse } from "./records.ts";

interface Pending {
  readonly command: string;
  readonly answer: Deferred<PiResponse>;
  readonly onResponse: ((response: PiResponse) => void) | undefined;
  readonly since: number;
}

export interface SendOptions {
  /**
   * The command's id, which pi repeats in its events. Must differ from those of pending commands. Default: unique.
   */
  readonly id?: string;
  /**
   * Called at the response's position in the order of pi's records, before any later record is handled. The promise
   * resolves only after the whole chunk was read.
   */
  readonly onResponse?: (response: PiResponse) => void;
}

/** Whether some daemon chose the id. */
export function isCommandId(id: string): boolean {
  return /^[0-9a-f]{6}\.\d+$/.test(id);
}

/** Writes commands and matches their answers by id. pi answers in any order. */
export class Commands {
  readonly #write: (line: string) => void;
  readonly #pending = new Map<string, Pending>();
  /** A child may answer commands of a former daemon: their ids begin otherwise. */
  readonly #prefix = `${randomBytes(3).toString("hex")}.`;
  #count = 0;
  #ended: WireError | undefined;

  /** `write` may throw (a full backlog): the command is then not pending. */
  constructor(write: (line: string) => void) {
    this.#write = write;
  }

  /** pi's answer, including one with `success: false`. Rejects with `child_exited` if the child ends before it. */
  send(command: PiCommand, options: SendOptions = {}): Promise<PiResponse> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    this.#count += 1;
    const id = options.id ?? `${this.#prefix}${this.#count}`;
    const line = `${JSON.stringify({ ...command, id })}\n`;
    const answered = this.expect(id, command.type, options.onResponse);
    try {
      this.#write(line);
    } catch (error) {
      this.#pending.delete(id);
      return Promise.reject(error);
    }
    return answered;
  }

  /** The answer to a command that a former daemon has sent. */
  expect(id: string, command: string, onResponse: SendOptions["onResponse"]): Promise<PiResponse> {
    if (this.#ended !== undefined) return Promise.reject(this.#ended);
    const answer = deferred<PiResponse>();
    this.#pending.set(id, { command, answer, onResponse, since: performance.now() });
    return answer.promise;
  }

  /** Writes a record that has no answer (the reply to a dialog). */
  post(record: PiCommand): void {
    if (this.#ended === undefined) this.#write(`${JSON.stringify(record)}\n`);
  }

  /** Returns whether the response belonged to a pending command. */
  settle(response: PiResponse): boolean {
    const pending = response.id === undefined ? undefined : this.#pending.get(response.id);
    if (pending === undefined) return false;
    this.#pending.delete(response.id as string);
    pending.onResponse?.(response);
    pending.answer.resolve(response);
    return true;
  }

  /** An unreadable response ends its command. */
  refuse(head: string, why: string): void {
    const id = /^\{"id":"([^"\\]+)","type":"response"/.exec(head)?.[1];
    const pending = id === undefined ? undefined : this.#pending.get(id);
    if (id === undefined || pending === undefined) return;
    this.#pending.delete(id);
    pending.answer.reject(new WireError("too_large", `pi's answer to "${pending.command}" ${why}.`));
  }

  /** Rejects all pending and all later commands. */
  end(error: WireError): void {
    this.#ended ??= error;
    const waiting = [...this.#pending.values()];
    this.#pending.clear();
    for (const { command, answer } of waiting) {
      answer.reject(new WireError("child_exited", `${error.message} It had not answered "${command}".`, error.data));
    }
  }

  get pending(): number {
    return this.#pending.size;
  }

  /** When the oldest pending command was sent, by the clock of `performance.now`. */
  get waitingSince(): number | undefined {
    return this.#pending.values().next().value?.since;
  }
}
