import type { DatabaseSync } from "node:sqlite";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";

// The writing thread loads this file: it imports no more than it needs.

/** Larger than anything that is written: what decompresses to more is none of ours. */
const maxUnpackedBytes = 256 * 1024 * 1024;

/**
 * Gives a connection the function `packed(bytes)`, which compresses. So it is whoever writes that does it: as soon as
 * there is much to be written, that is another thread.
 */
export function addPacking(connection: DatabaseSync): void {
  connection.function("packed", { deterministic: true }, (bytes) => packed(bytes as Uint8Array));
}

/** Compresses, with a sum of the content. */
export function packed(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
}

/** What was given to `packed`. Throws where the bytes are not what it gave. */
export function unpacked(bytes: Uint8Array): Buffer {
  return zstdDecompressSync(bytes, { maxOutputLength: maxUnpackedBytes });
}
