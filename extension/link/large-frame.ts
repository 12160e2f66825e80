import { createHash } from "node:crypto";
import type { InwardFrame } from "../../protocol/link.ts";
import { FrameError, parseInwardFrame } from "./inward-frame.ts";
import { takeOwnedFile } from "./owned-file.ts";

/** More than the largest context, or a thousand pushes of the largest size: a frame that large is a mistake. */
const maxFrameBytes = 384 * 1024 * 1024;

/**
 * The frame that a `file` frame stands for. It carries the same `rid`, since there is one reply to both. The file is
 * deleted when it is the daemon's at all. Throws a {@link FrameError}.
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
    throw new FrameError("The frame's file has another hash.", rid);
  }
  const frame = inner(content, rid);
  if (frame.kind === "file") throw new FrameError("The frame in the file is a file frame itself.", rid);
  if (frame.rid !== rid) throw new FrameError("The frame in the file has another rid.", rid);
  return frame;
}

function inner(content: Buffer, rid: string): InwardFrame {
  try {
    return parseInwardFrame(content.toString("utf8"));
  } catch (thrown) {
    throw new FrameError(thrown instanceof Error ? thrown.message : String(thrown), rid);
  }
}
