/** The bytes of all chunks; null if there are more than `maxBytes`: the rest is not read. */
export async function collected(
  chunks: AsyncIterable<Uint8Array>,
  maxBytes: number,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of chunks) {
    parts.push(part);
    size += part.length;
    if (size > maxBytes) return null;
  }
  return Buffer.concat(parts);
}
