import type { Notice, Notifier, Tab, TabStorage } from "../../../web/state/page.ts";

/** A page whose frames are drawn, and whose time passes, when a test says so. */
export class FakePage implements Tab {
  /** What the tab keeps. */
  readonly kept: Map<string, string>;
  readonly storage: TabStorage;
  readonly notifier = new FakeNotifier();
  #now = 1_000_000;
  #isHidden = false;
  readonly #frames = new Set<() => void>();
  readonly #listeners = new Set<() => void>();

  /** `kept`: of the page that was in the tab before. */
  constructor(kept = new Map<string, string>()) {
    this.kept = kept;
    this.storage = {
      getItem: (key) => kept.get(key) ?? null,
      setItem: (key, value) => void kept.set(key, value),
      removeItem: (key) => void kept.delete(key),
    };
  }

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

/** A browser's notifications; the person answers as `answer` says. */
class FakeNotifier implements Notifier {
  permission: NotificationPermission | undefined = "default";
  answer: NotificationPermission = "granted";
  asked = 0;
  /** What is shown now, by tag. */
  readonly shown = new Map<string, Notice>();

  async ask(): Promise<void> {
    this.asked += 1;
    this.permission = this.answer;
  }

  show(notice: Notice): () => void {
    this.shown.set(notice.tag, notice);
    return () => void this.shown.delete(notice.tag);
  }
}
