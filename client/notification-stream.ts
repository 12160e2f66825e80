import type { NotificationParams } from "../protocol/notifications.ts";
import type { DaemonPeer } from "./daemon-peer.ts";
import { type EventsOptions, frameLimits } from "./event-stream.ts";
import { FeedStream } from "./feed-stream.ts";
import type { EventGap } from "./local-errors.ts";
import type { FeedListener, FeedStart, SessionNotification } from "./session-feed.ts";

/** A notification of a session's log, or a gap in the log, in the order of the log. */
export type LogNotification =
  | SessionNotification
  | {
      readonly name: "session/gap";
      readonly params: Omit<NotificationParams<"session/gap">, "reason"> & Pick<EventGap, "reason">;
    };

/** Like {@link EventsOptions}; a gap is one of the notifications. */
export type NotificationsOptions = Omit<EventsOptions, "onGap">;

/**
 * All of a session's numbered notifications from one moment on, for one reader: pi's events and the daemon's own
 * notifications. It begins, continues after a lost connection, and ends as an `EventStream` does.
 */
export class NotificationStream extends FeedStream<LogNotification, FeedStart> {
  /** Use `SessionHandle.notifications()`. */
  constructor(peer: DaemonPeer, sessionId: string, options: NotificationsOptions = {}) {
    const { after, epoch, signal } = options;
    super({ ...frameLimits(options, 65_536), signal });
    let newest = after ?? 0;
    const push = (notification: LogNotification, seq: number, size: number): void => {
      if (this.push(notification, size, newest)) newest = seq;
    };
    const listener: FeedListener = {
      begin: (start) => this.begin(start),
      gap: (gap) => push({ name: "session/gap", params: { sessionId, ...gap } }, gap.to, 1),
      receive: (notification, frame) => push(notification, notification.params.seq, frame.length),
      end: (end) => this.feedEnded(end),
    };
    this.follow(
      () => peer.joinFeed(sessionId, listener, after, epoch),
      () => peer.leaveFeed(sessionId, listener),
    );
  }
}
