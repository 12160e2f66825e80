import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { WireError } from "../../../protocol/errors.ts";
import { isRecord } from "../../../protocol/objects.ts";

/** A file as it is served. */
export interface WebFile {
  readonly body: Buffer;
  /** The content type. */
  readonly type: string;
}

/** By the request's target. */
export type WebFiles = ReadonlyMap<string, WebFile>;

interface Listed {
  readonly path: string;
  readonly file: string;
  readonly type: string;
}

/** Reads the files that a build has listed. Throws `web_not_built`. */
export async function readWebFiles(directory: string, maxBytes: number): Promise<WebFiles> {
  const files = new Map<string, WebFile>();
  try {
    const list: unknown = JSON.parse(await readFile(join(directory, "files.json"), "utf8"));
    const listed = isRecord(list) && Array.isArray(list["files"]) ? list["files"].map(listedOf) : [];
    let bytes = 0;
    for (const { path, file, type } of listed) {
      const body = await readFile(join(directory, file));
      bytes += body.length;
      if (bytes > maxBytes) throw new Error(`they have more than ${maxBytes} bytes`);
      files.set(path, { body, type });
    }
    if (!files.has("/")) throw new Error("none is for the path /");
  } catch (cause) {
    const why = (cause as NodeJS.ErrnoException).code === "ENOENT" ? "they are missing" : (cause as Error).message;
    throw new WireError(
      "web_not_built",
      `The files of the web console cannot be used: ${why}. Run "npm run build" in a checkout; otherwise install pi-rpcd again.`,
      {},
      { cause },
    );
  }
  return files;
}

/** The list is a part of this program, but a wrong entry must not lead out of its directory. */
function listedOf(value: unknown): Listed {
  const { path, file, type } = (isRecord(value) ? value : {}) as Partial<Listed>;
  const isPlain = typeof file === "string" && /^[\w-][\w.-]*(?:\/[\w-][\w.-]*)*$/.test(file);
  const isTarget = typeof path === "string" && /^\/[\w./-]*$/.test(path);
  if (!isPlain || !isTarget || typeof type !== "string" || !/^[\w/+.; =-]+$/.test(type))
    throw new Error("their list has an entry that is not valid");
  return { path, file, type };
}
