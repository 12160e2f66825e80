/** What the state uses of the browser's page. Tests have one of their own. */
export interface Page {
  /** Unix time in milliseconds. */
  now(): number;
  /** Calls `paint` before the next frame is drawn; the returned function cancels it. A hidden page draws none. */
  frame(paint: () => void): () => void;
  readonly isHidden: boolean;
  /** Calls `listener` when the page is hidden or shown, until the returned function is called. */
  onVisibility(listener: () => void): () => void;
}

export type TabStorage = Pick<Storage, "getItem" | "setItem" | "removeItem">;

export interface Notice {
  /** Replaces a notification with the same tag. */
  readonly tag: string;
  readonly title: string;
  readonly body: string;
  /** Called when the page is in front. */
  readonly onClick: () => void;
}

/** The browser's notifications. */
export interface Notifier {
  /** Undefined: it has none. */
  readonly permission: NotificationPermission | undefined;
  /** Asks the person for it. Never rejects. */
  ask(): Promise<void>;
  /** Returns what takes it back. Undefined: it was not shown. */
  show(notice: Notice): (() => void) | undefined;
}

/** A page, and what the browser has for its tab. */
export interface Tab extends Page {
  /** Lasts as long as the tab; has nothing secret but the token. */
  readonly storage: TabStorage;
  readonly notifier: Notifier;
}

const browserNotifier: Notifier = {
  get permission() {
    return "Notification" in globalThis ? Notification.permission : undefined;
  },
  ask: async () => {
    if ("Notification" in globalThis) await Notification.requestPermission().catch(() => {});
  },
  show: ({ tag, title, body, onClick }) => {
    try {
      const shown = new Notification(title, { tag, body });
      shown.onclick = () => {
        window.focus();
        shown.close();
        onClick();
      };
      return () => shown.close();
    } catch {
      // Some browsers show them only from a service worker.
      return undefined;
    }
  },
};

/** The page of the browser in which this module runs. */
export const browserPage: Tab = {
  now: () => Date.now(),
  frame: (paint) => {
    const id = requestAnimationFrame(paint);
    return () => cancelAnimationFrame(id);
  },
  get isHidden() {
    return document.visibilityState === "hidden";
  },
  get storage() {
    return sessionStorage;
  },
  notifier: browserNotifier,
  onVisibility: (listener) => {
    document.addEventListener("visibilitychange", listener);
    return () => document.removeEventListener("visibilitychange", listener);
  },
};
