import type { Page } from "../../../web/state/page.ts";

/** A page whose frames are drawn, and whose time passes, when a test says so. */
export class FakePage implements Page {
  #now = 1_000_000;
  #isHidden = false;
  readonly #frames = new Set<() => void>();
  readonly #listeners = new Set<() => void>();

  now(): number {
    return this.#now;
  }

  frame(paint: () => void): () => void {
    this.#frames.add(paint);
    return () => void this.#frames.delete(paint);
  }

  get isHidden(): boolean {
    return this.#isHidden;
  }

  onVisibility(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  pass(ms: number): void {
    this.#now += ms;
  }

  /** Draws a frame; returns how many parts of the page wanted it. */
  draw(): number {
    const frames = [...this.#frames];
    this.#frames.clear();
    for (const paint of frames) paint();
    return frames.length;
  }

  hide(isHidden: boolean): void {
    this.#isHidden = isHidden;
    for (const listener of [...this.#listeners]) listener();
  }
}
