import { createHash } from "node:crypto";
import type { InwardFrame } from "../../protocol/link-inward.ts";
import { FrameError, parseInwardFrame } from "./inward-frame.ts";
import { takeOwnedFile } from "./owned-file.ts";

/** Larger than the largest context or a thousand pushes of the maximum size. */
const maxFrameBytes = 384 * 1024 * 1024;

/**
 * Reads the frame that a `file` frame refers to. It must have the same `rid`, because one reply answers both. The file
 * is deleted if it belongs to the daemon. Throws a {@link FrameError}.
 */
export function readLargeFrame({ rid, path, bytes, sha256 }: Extract<InwardFrame, { kind: "file" }>): InwardFrame {
  let content: Buffer;
  try {
    content = takeOwnedFile(path, maxFrameBytes);
  } catch (thrown) {
    throw new FrameError(
      `The frame's file could not be read: ${thrown instanceof Error ? thrown.message : thrown}`,
      rid,
    );
  }
  if (content.length !== bytes)
    throw new FrameError(`The frame's file has ${content.length} bytes, not ${bytes}.`, rid);
  if (createHash("sha256").update(content).digest("hex") !== sha256) {
    throw new FrameError("The hash of the frame's file does not match.", rid);
  }
  const frame = inner(content, rid);
  if (frame.kind === "file") throw new FrameError("The frame's file contains another file frame.", rid);
  if (frame.rid !== rid) throw new FrameError("The rid of the frame in the file does not match.", rid);
  return frame;
}

function inner(content: Buffer, rid: string): InwardFrame {
  try {
    return parseInwardFrame(content.toString("utf8"));
  } catch (thrown) {
    throw new FrameError(thrown instanceof Error ? thrown.message : String(thrown), rid);
  }
}
