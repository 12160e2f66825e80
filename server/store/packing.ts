import type { DatabaseSync } from "node:sqlite";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";

// The writing thread loads this file: it imports no more than it needs.

/** Larger than anything that is written: content beyond it is not ours. */
const maxUnpackedBytes = 256 * 1024 * 1024;

/**
 * Adds the function `packed(bytes)`, which compresses, to a connection. So the writer compresses: under load, the
 * writing thread.
 */
export function addPacking(connection: DatabaseSync): void {
  connection.function("packed", { deterministic: true }, (bytes) => packed(bytes as Uint8Array));
}

/** Compresses, with a checksum of the content. */
export function packed(bytes: Uint8Array): Buffer {
  return zstdCompressSync(bytes, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
}

/** Reverses `packed`. Throws if the bytes are damaged. */
export function unpacked(bytes: Uint8Array): Buffer {
  return zstdDecompressSync(bytes, { maxOutputLength: maxUnpackedBytes });
}
