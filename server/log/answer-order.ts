import type { Frame } from "../frames/frame.ts";

/** The place of an answer among the notifications of a session. */
export interface AnswerPlace {
  /** Puts the answer there; undefined: there is none. To be called once. */
  fill(answer: Frame | undefined): void;
}

export interface AnswerOrderLimits {
  /** How long notifications wait for the answer before them. */
  readonly maxWaitMs: number;
  /** How many bytes of notifications wait. */
  readonly maxBytes: number;
}

interface OpenPlace {
  /** Undefined: the answer is not known yet. */
  answer: Frame | undefined;
  isFilled: boolean;
}

type Item = { readonly frame: Frame } | { readonly place: OpenPlace };

/**
 * The frames of one subscriber, with answers at the places where pi gave them: a frame waits for the answers before it.
 * An answer that takes longer than the limits no longer holds anything up, and follows what was sent meanwhile.
 */
export class AnswerOrder {
  readonly #send: (frame: Frame) => void;
  readonly #limits: AnswerOrderLimits;
  readonly #onFault: (error: unknown) => void;
  #items: Item[] = [];
  #bytes = 0;

  /** `onFault`: receives an error of `send` after a wait. */
  constructor(send: (frame: Frame) => void, limits: AnswerOrderLimits, onFault: (error: unknown) => void) {
    this.#send = send;
    this.#limits = limits;
    this.#onFault = onFault;
  }

  /** Sends a frame after the answers that were placed before. */
  send(frame: Frame): void {
    if (this.#items.length === 0) {
      this.#send(frame);
      return;
    }
    this.#items.push({ frame });
    this.#bytes += frame.bytes.length;
    if (this.#bytes > this.#limits.maxBytes) this.#giveUp();
  }

  /** The place after everything that was sent before. */
  place(): AnswerPlace {
    const place: OpenPlace = { answer: undefined, isFilled: false };
    this.#items.push({ place });
    const timer = setTimeout(() => {
      place.isFilled = true;
      try {
        this.#advance();
      } catch (error) {
        this.#onFault(error);
      }
    }, this.#limits.maxWaitMs).unref();
    return {
      fill: (answer) => {
        clearTimeout(timer);
        const isLate = place.isFilled;
        place.isFilled = true;
        if (!isLate) place.answer = answer;
        else if (answer !== undefined) this.#send(answer);
        this.#advance();
      },
    };
  }

  /** Drops the frames that wait. Answers are given all the same. */
  end(): void {
    this.#items = this.#items.filter((item) => "place" in item);
    this.#bytes = 0;
    this.#giveUp();
  }

  #giveUp(): void {
    for (const item of this.#items) if ("place" in item) item.place.isFilled = true;
    this.#advance();
  }

  #advance(): void {
    for (let item = this.#items[0]; item !== undefined; item = this.#items[0]) {
      if ("place" in item && !item.place.isFilled) return;
      this.#items.shift();
      const frame = "place" in item ? item.place.answer : item.frame;
      if (frame === undefined) continue;
      if ("frame" in item) this.#bytes -= frame.bytes.length;
      this.#send(frame);
    }
  }
}
